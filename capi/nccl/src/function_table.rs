//! The functions of NCCL's library up to version 2.32.3: those of `nccl.h`, those that its device headers declare for
//! the host, and one that the library exports for itself.

/// Hands every function to a macro. A row has the version that added the function, as NCCL counts (2.28.9 is 22809;
/// 21400 stands for all versions up to it), what the library does with a call, and the function without its prefix.
///
/// * `operation`: it moves or combines data on a stream. In a group it waits for the end of the group.
/// * `call`: it goes on at once, behind what its group has so far.
/// * `joins`: the same, and `rank` is the place of this process in a new communicator.
/// * `ask`: it goes on at once, and does not touch a group.
/// * `starts`, `ends`, `simulates`: it begins or ends a group.
/// * `text`, `last`: it returns a text about a code, or about the last error.
macro_rules! functions {
    ($then:ident) => {
        $then! {
            21400 ask GetVersion(version: *mut c_int) -> Code;
            21400 ask GetUniqueId(id: *mut UniqueId) -> Code;
            21400 text GetErrorString(code: c_int) -> Text;
            21400 last GetLastError(comm: Comm) -> Text;
            22403 ask ResetDebugInit() -> ();
            22403 ask ResetDebugInitInternal() -> ();

            21400 joins CommInitRank(comm: *mut Comm, nranks: c_int, id: UniqueId, rank: c_int) -> Code;
            21400 joins CommInitRankConfig(
                comm: *mut Comm, nranks: c_int, id: UniqueId, rank: c_int, config: Out) -> Code;
            22304 joins CommInitRankScalable(
                comm: *mut Comm, nranks: c_int, rank: c_int, nids: c_int, ids: *mut UniqueId, config: Out) -> Code;
            21400 call CommInitAll(comms: *mut Comm, ndevices: c_int, devices: *const c_int) -> Code;
            21400 call CommFinalize(comm: Comm) -> Code;
            21400 call CommDestroy(comm: Comm) -> Code;
            21400 call CommAbort(comm: Comm) -> Code;
            22807 call CommRevoke(comm: Comm, flags: c_int) -> Code;
            21801 call CommSplit(comm: Comm, color: c_int, key: c_int, made: *mut Comm, config: Out) -> Code;
            22703 call CommShrink(
                comm: Comm, without: *mut c_int, count: c_int, made: *mut Comm, config: Out, flags: c_int) -> Code;
            22902 call CommGetUniqueId(comm: Comm, id: *mut UniqueId) -> Code;
            22902 call CommGrow(
                comm: Comm, nranks: c_int, id: *const UniqueId, rank: c_int, made: *mut Comm, config: Out) -> Code;
            22907 call CommSuspend(comm: Comm, flags: c_int) -> Code;
            22907 call CommResume(comm: Comm) -> Code;
            21400 ask CommGetAsyncError(comm: Comm, state: *mut c_int) -> Code;
            21400 ask CommCount(comm: Comm, count: *mut c_int) -> Code;
            21400 ask CommCuDevice(comm: Comm, device: *mut c_int) -> Code;
            21400 ask CommUserRank(comm: Comm, rank: *mut c_int) -> Code;
            22907 ask CommMemStats(comm: Comm, which: c_int, value: *mut u64) -> Code;
            22902 ask CommQueryProperties(comm: Comm, properties: Out) -> Code;

            21901 ask MemAlloc(at: *mut Out, size: usize) -> Code;
            21901 call MemFree(at: Out) -> Code;
            21901 call CommRegister(comm: Comm, at: Out, size: usize, handle: *mut Out) -> Code;
            21901 call CommDeregister(comm: Comm, handle: Out) -> Code;
            22703 call CommWindowRegister(
                comm: Comm, at: Out, size: usize, window: *mut Window, flags: c_int) -> Code;
            22703 call CommWindowDeregister(comm: Comm, window: Window) -> Code;
            22902 ask WinGetUserPtr(comm: Comm, window: Window, at: *mut Out) -> Code;

            21400 call RedOpCreatePreMulSum(
                op: *mut c_int, scalar: Out, dtype: c_int, place: c_int, comm: Comm) -> Code;
            21400 call RedOpDestroy(op: c_int, comm: Comm) -> Code;

            21400 operation AllReduce(
                send: In, recv: Out, count: usize, dtype: c_int, op: c_int, comm: Comm, stream: Stream) -> Code;
            21400 operation Reduce(
                send: In, recv: Out, count: usize, dtype: c_int, op: c_int, root: c_int,
                comm: Comm, stream: Stream) -> Code;
            21400 operation ReduceScatter(
                send: In, recv: Out, count: usize, dtype: c_int, op: c_int, comm: Comm, stream: Stream) -> Code;
            21400 operation Bcast(
                recv: Out, count: usize, dtype: c_int, root: c_int, comm: Comm, stream: Stream) -> Code;
            21400 operation Broadcast(
                send: In, recv: Out, count: usize, dtype: c_int, root: c_int, comm: Comm, stream: Stream) -> Code;
            21400 operation AllGather(
                send: In, recv: Out, count: usize, dtype: c_int, comm: Comm, stream: Stream) -> Code;
            22803 operation AlltoAll(
                send: In, recv: Out, count: usize, dtype: c_int, comm: Comm, stream: Stream) -> Code;
            22803 operation Gather(
                send: In, recv: Out, count: usize, dtype: c_int, root: c_int, comm: Comm, stream: Stream) -> Code;
            22803 operation Scatter(
                send: In, recv: Out, count: usize, dtype: c_int, root: c_int, comm: Comm, stream: Stream) -> Code;
            21400 operation Send(
                send: In, count: usize, dtype: c_int, root: c_int, comm: Comm, stream: Stream) -> Code;
            21400 operation Recv(
                recv: Out, count: usize, dtype: c_int, root: c_int, comm: Comm, stream: Stream) -> Code;
            23200 operation AllReduceConfig(
                send: In, recv: Out, count: usize, dtype: c_int, op: c_int,
                comm: Comm, stream: Stream, config: In) -> Code;
            23200 operation ReduceConfig(
                send: In, recv: Out, count: usize, dtype: c_int, op: c_int, root: c_int,
                comm: Comm, stream: Stream, config: In) -> Code;
            23200 operation ReduceScatterConfig(
                send: In, recv: Out, count: usize, dtype: c_int, op: c_int,
                comm: Comm, stream: Stream, config: In) -> Code;
            23200 operation BroadcastConfig(
                send: In, recv: Out, count: usize, dtype: c_int, root: c_int,
                comm: Comm, stream: Stream, config: In) -> Code;
            23200 operation AllGatherConfig(
                send: In, recv: Out, count: usize, dtype: c_int, comm: Comm, stream: Stream, config: In) -> Code;
            23200 operation AlltoAllConfig(
                send: In, recv: Out, count: usize, dtype: c_int, comm: Comm, stream: Stream, config: In) -> Code;
            23200 operation GatherConfig(
                send: In, recv: Out, count: usize, dtype: c_int, root: c_int,
                comm: Comm, stream: Stream, config: In) -> Code;
            23200 operation ScatterConfig(
                send: In, recv: Out, count: usize, dtype: c_int, root: c_int,
                comm: Comm, stream: Stream, config: In) -> Code;

            22902 call PutSignal(
                send: In, count: usize, dtype: c_int, peer: c_int, window: Window, place: usize,
                signal: c_int, context: c_int, flags: c_uint, comm: Comm, stream: Stream) -> Code;
            22902 call Signal(
                peer: c_int, signal: c_int, context: c_int, flags: c_uint, comm: Comm, stream: Stream) -> Code;
            22902 call WaitSignal(count: c_int, signals: Out, comm: Comm, stream: Stream) -> Code;

            21400 starts GroupStart() -> Code;
            21400 ends GroupEnd() -> Code;
            22203 simulates GroupSimulateEnd(info: Out) -> Code;

            22803 call DevCommCreate(comm: Comm, wanted: In, made: Out) -> Code;
            22803 call DevCommDestroy(comm: Comm, made: In) -> Code;
            22902 ask GetLsaMultimemDevicePointer(window: Window, place: usize, at: *mut Out) -> Code;
            22902 ask GetMultimemDevicePointer(window: Window, place: usize, memory: Out, at: *mut Out) -> Code;
            22902 ask GetLsaDevicePointer(window: Window, place: usize, rank: c_int, at: *mut Out) -> Code;
            22902 ask GetPeerDevicePointer(window: Window, place: usize, peer: c_int, at: *mut Out) -> Code;
            23200 ask GetMultimemDeviceLeInfo(
                window: Window, place: usize, id: *mut u32, offset: *mut usize) -> Code;
            23200 ask GetCftDeviceLeInfo(
                window: Window, place: usize, peer: c_int, team: Team, id: *mut u32, offset: *mut usize) -> Code;
            23200 ask GetPeerDeviceLeInfo(
                window: Window, place: usize, peer: c_int, id: *mut u32, offset: *mut usize) -> Code;
            22803 ask TeamWorld(comm: Comm) -> Team;
            22803 ask TeamLsa(comm: Comm) -> Team;
            22803 ask TeamRail(comm: Comm) -> Team;
            23200 ask TeamCft(comm: Comm, mode: c_int) -> Team;
            23200 ask TeamCftMultimem(comm: Comm) -> Team;
            22803 ask TeamRankToWorld(comm: Comm, team: Team, rank: c_int) -> c_int;
            22803 ask TeamRankToLsa(comm: Comm, team: Team, rank: c_int) -> c_int;
            22803 ask LsaBarrierCreateRequirement(team: Team, barriers: c_int, handle: Out, wanted: Out) -> Code;
            22807 ask GinBarrierCreateRequirement(
                comm: Comm, team: Team, barriers: c_int, handle: Out, wanted: Out) -> Code;
            22907 ask GinOutboxCreateRequirement(
                blocks: c_int, size: c_int, handle: Out, wanted: Out) -> Code;
            22907 ask GinInboxA2ACreateRequirement(
                peers: Team, blocks: c_int, size: c_int, handle: Out, wanted: Out) -> Code;
            22803 ask LLA2ACalcSlots(elements: c_int, size: c_int) -> c_int;
            22803 ask LLA2ACreateRequirement(blocks: c_int, slots: c_int, handle: Out, wanted: Out) -> Code;

            23000 ask ParamBind(handle: *mut Out, key: Text) -> Code;
            23000 ask ParamGetI8(handle: Out, value: *mut i8) -> Code;
            23000 ask ParamGetI16(handle: Out, value: *mut i16) -> Code;
            23000 ask ParamGetI32(handle: Out, value: *mut i32) -> Code;
            23000 ask ParamGetI64(handle: Out, value: *mut i64) -> Code;
            23000 ask ParamGetU8(handle: Out, value: *mut u8) -> Code;
            23000 ask ParamGetU16(handle: Out, value: *mut u16) -> Code;
            23000 ask ParamGetU32(handle: Out, value: *mut u32) -> Code;
            23000 ask ParamGetU64(handle: Out, value: *mut u64) -> Code;
            23000 ask ParamGetStr(handle: Out, value: *mut Text) -> Code;
            23000 ask ParamGet(handle: Out, value: Out, room: c_int, size: *mut c_int) -> Code;
            23000 ask ParamGetParameter(key: Text, value: *mut Text, size: *mut c_int) -> Code;
            23000 ask ParamGetAllParameterKeys(keys: *mut *mut Text, count: *mut c_int) -> Code;
            23000 ask ParamDumpAll() -> ();
            23200 ask SetEncryption(config: In) -> Code;
        }
    };
}
pub(crate) use functions;

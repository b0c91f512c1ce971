//! The methods that set the algorithms of a communicator; [`Comm`](crate::Comm) and [`World`](crate::World) both have
//! them.

/// Makes the methods for a type with a field `chosen` and a method `forgotten`; `$more` is a sentence of each one's
/// documentation.
macro_rules! using {
    ($more:literal) => {
        /// Runs `algorithm` from now on, which may be your own, for calls of its collective at every size that no
        /// [`using_up_to`](Self::using_up_to) covers. It is proved for the number of ranks at the first call, which
        /// returns the error if the algorithm is wrong, or has no in-place form (E0408) and the call is in place.
        ///
        /// ```
        /// use roundelay::{Comm, ReduceOp, collective, library::RingAllReduce};
        ///
        /// collective! {
        ///     /// Every rank takes the data of all other ranks, at once. For few ranks and bytes.
        ///     algorithm Direct() -> AllReduce {
        ///         scratch theirs: nranks like output;
        ///         for d in 1..nranks { peer((rank + d) % nranks).TxAck(); }
        ///         for d in 1..nranks {
        ///             let from = peer((rank + nranks - d) % nranks);
        ///             from.RxAck();
        ///             copy(from.input, local.theirs[d]);
        ///             from.TxDataSignal();
        ///         }
        ///         for d in 1..nranks { peer((rank + d) % nranks).RxDataSignal(); }
        ///         copy(local.input, local.output);
        ///         for d in 1..nranks { reduce(local.theirs[d], local.output); }
        ///     }
        /// }
        ///
        /// // Up to 64 KiB every rank takes all data, and above that data goes around a ring.
        /// let comm = Comm::new(3)?.using_up_to(64 << 10, Direct::new()).using(RingAllReduce::new());
        /// let (mut a, mut b, mut c) = ([1_i32; 100], [2; 100], [3; 100]);
        /// comm.all_reduce(&mut [&mut a[..], &mut b, &mut c], ReduceOp::Sum)?;
        /// assert_eq!(a, [6; 100]);
        /// # Ok::<(), roundelay::Error>(())
        /// ```
        ///
        #[doc = $more]
        #[must_use]
        pub fn using(self, algorithm: impl Algorithm + Send + Sync + 'static) -> Self {
            self.using_up_to(u64::MAX, algorithm)
        }

        /// Runs `algorithm` from now on for calls of its collective of at most `bytes` bytes, where no smaller bound
        /// that was given covers the call. Bytes are nccl-tests' size: the larger of a rank's two buffers.
        ///
        #[doc = $more]
        #[must_use]
        pub fn using_up_to(
            mut self,
            bytes: u64,
            algorithm: impl Algorithm + Send + Sync + 'static,
        ) -> Self {
            self.chosen.fixed(bytes, Arc::new(algorithm));
            self.forgotten()
        }

        /// Keeps promises about the order of reductions from now on: only algorithms whose certificate has them are run,
        /// and where `all_counts` is promised, the order is the same at every size. The library then runs its ordered
        /// algorithms, whose results have equal bits for every rank, place and count. An algorithm of your own that
        /// breaks a promise is refused when it is called (E0317, E0320), and `reassociate` has no effect on reductions.
        ///
        /// Without this, the promises are those of the environment variable `ROUNDELAY_ORDER`, such as
        /// `all_counts,roundings=1`.
        ///
        /// ```
        /// use roundelay::{Comm, Promises, ReduceOp, half::bf16};
        ///
        /// let comm = Comm::new(3)?.in_order(Promises::all());
        /// let part = |x: f32| vec![bf16::from_f32(x); 10];
        /// let (mut a, mut b, mut c) = (part(256.0), part(1.0), part(1.0));
        /// comm.all_reduce(&mut [&mut a[..], &mut b, &mut c], ReduceOp::Sum)?;
        /// // With a rounding after each rank the sum would be 256: 257 is no bf16.
        /// assert_eq!(a[0].to_f32(), 258.0);
        /// # Ok::<(), roundelay::Error>(())
        /// ```
        ///
        #[doc = $more]
        #[must_use]
        pub fn in_order(mut self, promises: $crate::Promises) -> Self {
            self.chosen.promise(promises);
            self.forgotten()
        }

        /// Returns the promises that the algorithm of a call keeps, with its roundings; none where the call does not
        /// reduce. This proves the algorithm.
        ///
        /// ```
        /// use roundelay::{Call, Collective, Comm, DType, Promises, ReduceOp};
        ///
        /// let comm = Comm::new(8)?.in_order(Promises::all());
        /// let (collective, op) = (Collective::AllReduce, ReduceOp::Sum);
        /// let call = Call { collective, root: 0, count: 1000, dtype: DType::Bf16, op };
        /// assert_eq!(
        ///     comm.order_of(&call)?.to_string(),
        ///     "all_ranks,all_elements,all_counts,rank_order,every_run,roundings=1"
        /// );
        /// # Ok::<(), roundelay::Error>(())
        /// ```
        ///
        /// # Errors
        /// Those of the call.
        pub fn order_of(&self, call: &$crate::Call) -> Result<$crate::Promises, Error> {
            let nranks = self.nranks();
            self.chosen.order_of(&call.of(nranks)?, nranks)
        }

        /// Runs for calls of a rooted collective, at every size, the algorithm that `algorithm` makes for the root of
        /// the call. An algorithm of a rooted collective that was passed to [`using`](Self::using) serves the calls of
        /// its own root alone.
        ///
        /// ```
        /// use roundelay::{Comm, library::RingBroadcast};
        ///
        /// let comm = Comm::new(2)?.using_rooted(|root| RingBroadcast::new().root(root));
        /// let (mut a, mut b) = ([1.0_f32; 10], [2.0; 10]);
        /// comm.broadcast(&mut [&mut a[..], &mut b], 1)?;
        /// assert_eq!(a, [2.0; 10]);
        /// # Ok::<(), roundelay::Error>(())
        /// ```
        ///
        #[doc = $more]
        #[must_use]
        pub fn using_rooted<A: Algorithm + 'static>(
            mut self,
            algorithm: impl Fn(u32) -> A + Send + Sync + 'static,
        ) -> Self {
            self.chosen.by_root(u64::MAX, algorithm);
            self.forgotten()
        }
    };
}

pub(crate) use using;

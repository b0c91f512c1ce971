"""Arrays on GPUs, those of the driver for tests: each rank has a process and a GPU of its own."""


def test_arrays_of_gpus_are_reduced_there(driver: None, launch) -> None:
    done = launch(
        3,
        """
        import ctypes

        import numpy
        from dlpack import Produced

        import roundelay
        from roundelay import ArgumentError, World

        driver = ctypes.CDLL("libcuda.so.1")

        def cuda(name, *arguments):
            code = getattr(driver, name)(*arguments)
            assert code == 0, (name, code)

        class Gpu(Produced):
            def __init__(self, values):
                self.address = ctypes.c_uint64()
                self.values = values
                cuda("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(values.nbytes))
                cuda("cuMemcpyHtoD_v2", self.address, values.ctypes.data_as(ctypes.c_void_p),
                     ctypes.c_size_t(values.nbytes))
                super().__init__(values.shape, device=2, data=self.address.value)

            def new_empty(self, shape):
                return Gpu(numpy.zeros(shape, "f4"))

            def read(self):
                cuda("cuMemcpyDtoH_v2", self.values.ctypes.data_as(ctypes.c_void_p), self.address,
                     ctypes.c_size_t(self.values.nbytes))
                return self.values

        with World.from_env(timeout=20) as world:
            rank, n = world.rank, world.nranks
            context = ctypes.c_void_p()
            cuda("cuInit", 0)
            cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), rank)
            cuda("cuCtxSetCurrent", context)
            mine = Gpu(numpy.arange(1000, dtype="f4") + rank)
            try:
                world.all_reduce(mine)
            except ArgumentError as error:
                assert error.code == "E0420" and "World.on_device" in str(error), error
            else:
                raise AssertionError("no GPU is open")
            world.on_device(rank)
            expected = n * numpy.arange(1000, dtype="f4") + n * (n - 1) / 2
            sums = Gpu(numpy.zeros(1000, "f4"))
            for _ in range(3):
                world.all_reduce(mine, out=sums)
            # In place.
            world.all_reduce(mine)
            world.device_wait()
            for got in (mine.read(), sums.read()):
                assert (got == expected).all(), got[:5]
            assert mine.asked[-1].get("stream") == -1, mine.asked
            every = world.all_gather(Gpu(numpy.full(4, float(rank), "f4")), algorithm="RingAllGather")
            world.device_wait()
            gathered = every.read().reshape(-1)
            assert (gathered == numpy.repeat(numpy.arange(n, dtype="f4"), 4)).all(), gathered
            try:
                world.all_reduce(mine, out=numpy.zeros(1000, "f4"))
            except ArgumentError as error:
                assert error.code == "E0420" and "in one place" in str(error), error
            else:
                raise AssertionError("two places")
            # Memory that all ranks map, as libraries take it.
            lent = world.device_alloc(4 * 1000)
            shown = lent.__cuda_array_interface__
            assert shown["data"] == (lent.address, False) and shown["shape"] == (4000,)
            given = numpy.arange(1000, dtype="f4") + rank
            cuda("cuMemcpyHtoD_v2", ctypes.c_uint64(lent.address), given.ctypes.data_as(ctypes.c_void_p),
                 ctypes.c_size_t(given.nbytes))
            f32 = 7
            for _ in range(4):
                world.call_on_stream(0, lent.address, sums.address.value, 1000, f32)
                world.device_wait()
                assert (sums.read() == expected).all()
            del lent
            # Memory of the host goes on as before.
            assert (world.all_reduce(numpy.ones(3)) == n).all()
            print("done")
        """,
    )
    assert (done.returncode, done.stdout) == (0, "done\n" * 3), done.stderr

! Collectives of a program in Fortran, whose results are known: by `use mpi`, by `mpif.h`, and by `use mpi_f08`, where the
! compiler is told that it is there (-DF08). Each kind of call is made as often as the last line says.
module counts
  implicit none
  integer, parameter :: n = 3000
contains
  integer function value(of, at)
    integer, intent(in) :: of, at
    value = mod(of * 13 + at * 7, 64)
  end function

  integer function total(nranks, at)
    integer, intent(in) :: nranks, at
    integer :: r
    total = 0
    do r = 0, nranks - 1
      total = total + value(r, at)
    end do
  end function
end module

! What is wrong ends the job.
subroutine check(right, what)
  use mpi
  implicit none
  logical, intent(in) :: right
  character(*), intent(in) :: what
  integer :: code
  if (right) return
  write (0, '(2a)') 'WRONG: ', what
  call MPI_Abort(MPI_COMM_WORLD, 1, code)
end subroutine

subroutine by_module(comm)
  use mpi
  use counts
  implicit none
  integer, intent(in) :: comm
  integer :: nranks, rank, code, i, r
  integer, allocatable :: mine(:), all(:), theirs(:), many(:), own(:), places(:)
  double precision :: reals(n), sums(n)
  call MPI_Comm_size(comm, nranks, code)
  call MPI_Comm_rank(comm, rank, code)
  allocate (mine(n * nranks), all(n * nranks), theirs(n * nranks))
  do i = 1, n * nranks
    mine(i) = value(rank, i)
  end do
  reals = mine(1:n)

  call MPI_Allreduce(reals, sums, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, code)
  call check(code == MPI_SUCCESS, 'code of Allreduce')
  call check(all_of(nint(sums), 0), 'Allreduce')
  call MPI_Allreduce(MPI_IN_PLACE, reals, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, code)
  call check(all_of(nint(reals), 0), 'Allreduce in place')

  all = 0
  call MPI_Allgather(mine, n, MPI_INTEGER, all, n, MPI_INTEGER, comm, code)
  call check(gathered(all), 'Allgather')
  all = 0
  all(rank * n + 1:(rank + 1) * n) = mine(1:n)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INTEGER, comm, code)
  call check(gathered(all), 'Allgather in place')

  all = 0
  call MPI_Reduce_scatter_block(mine, all, n, MPI_INTEGER, MPI_SUM, comm, code)
  call check(all_of(all(1:n), rank * n), 'Reduce_scatter_block')
  all = mine
  call MPI_Reduce_scatter_block(MPI_IN_PLACE, all, n, MPI_INTEGER, MPI_SUM, comm, code)
  call check(all_of(all(1:n), rank * n), 'Reduce_scatter_block in place')

  do r = 0, nranks - 1
    all = mine
    call MPI_Bcast(all, n, MPI_INTEGER, r, comm, code)
    call check(all_values(all(1:n), r, 0), 'Bcast')
    all = 0
    call MPI_Reduce(mine, all, n, MPI_INTEGER, MPI_SUM, r, comm, code)
    if (rank == r) call check(all_of(all(1:n), 0), 'Reduce')
    all = 0
    call MPI_Gather(mine, n, MPI_INTEGER, all, n, MPI_INTEGER, r, comm, code)
    if (rank == r) call check(gathered(all), 'Gather')
    all = 0
    call MPI_Scatter(mine, n, MPI_INTEGER, all, n, MPI_INTEGER, r, comm, code)
    call check(all_values(all(1:n), r, rank * n), 'Scatter')
  end do

  all = 0
  call MPI_Alltoall(mine, n, MPI_INTEGER, all, n, MPI_INTEGER, comm, code)
  do r = 0, nranks - 1
    call check(all_values(all(r * n + 1:(r + 1) * n), r, rank * n), 'Alltoall')
  end do

  ! Block r has n - r elements, and lies where r blocks of n would be before it.
  allocate (many(nranks), own(nranks), places(nranks))
  many = [(n - r, r = 0, nranks - 1)]
  own = n - rank
  places = [(r * n, r = 0, nranks - 1)]
  all = 0
  call MPI_Allgatherv(mine, n - rank, MPI_INTEGER, all, many, places, MPI_INTEGER, comm, code)
  do r = 0, nranks - 1
    call check(all_values(all(r * n + 1:(r + 1) * n - r), r, 0), 'Allgatherv')
  end do
  all = 0
  call MPI_Reduce_scatter(mine, all, many, MPI_INTEGER, MPI_SUM, comm, code)
  call check(all_of(all(1:n - rank), sum(many(1:rank))), 'Reduce_scatter')
  all = 0
  call MPI_Alltoallv(mine, many, places, MPI_INTEGER, all, own, places, MPI_INTEGER, comm, code)
  do r = 0, nranks - 1
    call check(all_values(all(r * n + 1:(r + 1) * n - rank), r, rank * n), 'Alltoallv')
  end do
  do r = 0, nranks - 1
    all = 0
    call MPI_Scatterv(mine, many, places, MPI_INTEGER, all, n - rank, MPI_INTEGER, r, comm, code)
    call check(all_values(all(1:n - rank), r, rank * n), 'Scatterv')
    all = 0
    call MPI_Gatherv(mine, n - rank, MPI_INTEGER, all, many, places, MPI_INTEGER, r, comm, code)
    if (rank == r) call check(all_values(all(1:n), 0, 0), 'Gatherv')
    if (rank == r) call check(all_values(all(n + 1:2 * n - 1), 1, 0), 'Gatherv')
  end do
  call MPI_Barrier(comm, code)
  call check(code == MPI_SUCCESS, 'code of Barrier')
contains
  logical function all_of(found, from)
    integer, intent(in) :: found(:), from
    integer :: at
    all_of = .true.
    do at = 1, size(found)
      all_of = all_of .and. found(at) == total(nranks, from + at)
    end do
  end function

  logical function all_values(found, of, from)
    integer, intent(in) :: found(:), of, from
    integer :: at
    all_values = .true.
    do at = 1, size(found)
      all_values = all_values .and. found(at) == value(of, from + at)
    end do
  end function

  logical function gathered(found)
    integer, intent(in) :: found(n * nranks)
    integer :: of
    gathered = .true.
    do of = 0, nranks - 1
      gathered = gathered .and. all_values(found(of * n + 1:(of + 1) * n), of, 0)
    end do
  end function
end subroutine

! An address of its own at MPI_BOTTOM, and an error that the program asks for.
subroutine by_header()
  use counts
  implicit none
  include 'mpif.h'
  integer, save, target :: data(n)
  integer :: nranks, rank, code, i, lengths(1), absolute
  integer(kind=MPI_ADDRESS_KIND) :: places(1)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  do i = 1, n
    data(i) = value(rank, i)
  end do
  call MPI_Allreduce(MPI_IN_PLACE, data, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  do i = 1, n
    call check(data(i) == total(nranks, i), 'Allreduce by mpif.h')
  end do
  lengths(1) = n
  call MPI_Get_address(data, places(1), code)
  call MPI_Type_create_hindexed(1, lengths, places, MPI_INTEGER, absolute, code)
  call MPI_Type_commit(absolute, code)
  if (rank /= 0) data = 0
  call MPI_Bcast(MPI_BOTTOM, 1, absolute, 0, MPI_COMM_WORLD, code)
  do i = 1, n
    call check(data(i) == total(nranks, i), 'Bcast at MPI_BOTTOM')
  end do
  call MPI_Type_free(absolute, code)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, code)
  call MPI_Bcast(data, n, MPI_INTEGER, nranks, MPI_COMM_WORLD, code)
  call check(code /= MPI_SUCCESS, 'a root that is none')
end subroutine

#ifdef F08
subroutine by_f08()
  use mpi_f08
  use counts
  implicit none
  type(MPI_Comm) :: comm
  integer :: nranks, rank, i
  integer :: data(n), found(n)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_size(comm, nranks)
  call MPI_Comm_rank(comm, rank)
  do i = 1, n
    data(i) = value(rank, i)
  end do
  call MPI_Allreduce(data, found, n, MPI_INTEGER, MPI_SUM, comm)
  call MPI_Allreduce(MPI_IN_PLACE, data, n, MPI_INTEGER, MPI_SUM, comm)
  do i = 1, n
    call check(found(i) == total(nranks, i) .and. data(i) == found(i), 'Allreduce by mpi_f08')
  end do
  if (rank /= nranks - 1) data = 0
  call MPI_Bcast(data, n, MPI_INTEGER, nranks - 1, comm)
  do i = 1, n
    call check(data(i) == total(nranks, i), 'Bcast by mpi_f08')
  end do
  call MPI_Barrier(comm)
  call MPI_Comm_free(comm)
end subroutine
#endif

#ifdef F08
subroutine begins()
  use mpi_f08
  implicit none
  integer :: provided
  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided)
end subroutine

subroutine ends()
  use mpi_f08
  implicit none
  call MPI_Finalize()
end subroutine
#else
subroutine begins()
  use mpi
  implicit none
  integer :: code
  call MPI_Init(code)
end subroutine

subroutine ends()
  use mpi
  implicit none
  integer :: code
  call MPI_Finalize(code)
end subroutine
#endif

program fortran
  use mpi
  implicit none
  integer :: comm, rank, nranks, code, allreduces, bcasts
  call begins()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, code)
  call by_module(MPI_COMM_WORLD)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, comm, code)
  call by_module(comm)
  call MPI_Comm_free(comm, code)
  call by_header()
  allreduces = 5
  bcasts = 2 * nranks + 2
#ifdef F08
  call by_f08()
  allreduces = allreduces + 2
  bcasts = bcasts + 1
#endif
  call MPI_Barrier(MPI_COMM_WORLD, code)
  if (rank == 0) write (*, '(a, i0, a, i0)') 'OK: Allreduce ', allreduces, ', Bcast ', bcasts
  call ends()
end program

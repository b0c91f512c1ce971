/* A library that calls itself an MPI and is none that anybody knows: each function says what it is, and returns 0. */
#include <stdio.h>
#include <string.h>

int PMPI_Get_library_version(char *text, int *len) {
    strcpy(text, "Some MPI 1.0\nand more");
    *len = (int)strlen(text);
    return 0;
}

#define MADE(NAME) \
    int P##NAME(void) { \
        puts("theirs: " #NAME); \
        return 0; \
    } \
    int NAME(void) { return P##NAME(); }
#define THERE(NAME) \
    int P##NAME(void) { return 0; }

MADE(MPI_Init)
MADE(MPI_Init_thread)
MADE(MPI_Finalize)
MADE(MPI_Allreduce)
MADE(MPI_Barrier)
THERE(MPI_Initialized)
THERE(MPI_Finalized)
THERE(MPI_Query_thread)
THERE(MPI_Comm_size)
THERE(MPI_Comm_rank)
THERE(MPI_Comm_test_inter)
THERE(MPI_Comm_remote_size)
THERE(MPI_Comm_get_parent)
THERE(MPI_Comm_dup)
THERE(MPI_Comm_free)
THERE(MPI_Comm_group)
THERE(MPI_Group_translate_ranks)
THERE(MPI_Group_free)
THERE(MPI_Comm_create_keyval)
THERE(MPI_Comm_set_attr)
THERE(MPI_Comm_create_errhandler)
THERE(MPI_Comm_get_errhandler)
THERE(MPI_Comm_set_errhandler)
THERE(MPI_Errhandler_free)
THERE(MPI_Comm_call_errhandler)
THERE(MPI_Add_error_code)
THERE(MPI_Add_error_string)
THERE(MPI_Error_string)
THERE(MPI_Type_size_x)
THERE(MPI_Type_get_extent)
THERE(MPI_Type_get_envelope)
THERE(MPI_Pack)
THERE(MPI_Unpack)
THERE(MPI_Type_create_hindexed)
THERE(MPI_Type_commit)
THERE(MPI_Type_free)
THERE(MPI_Send)
THERE(MPI_Sendrecv)
THERE(MPI_Isend)
THERE(MPI_Irecv)
THERE(MPI_Test)
THERE(MPI_Cancel)
THERE(MPI_Reduce_local)
THERE(MPI_Allgather)
THERE(MPI_Reduce_scatter_block)
THERE(MPI_Bcast)
THERE(MPI_Reduce)
THERE(MPI_Scatter)
THERE(MPI_Gather)
THERE(MPI_Alltoall)
THERE(MPI_Allgatherv)
THERE(MPI_Reduce_scatter)
THERE(MPI_Gatherv)
THERE(MPI_Scatterv)
THERE(MPI_Alltoallv)
THERE(MPI_Abort)

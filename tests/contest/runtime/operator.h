// What a test appends to an operator's text, so that the driver finds it.
#pragma once
#include "hcomm_stub.h"

HcclResult CallOperator(const void* input, void* output, uint64_t count, HcclDataType type, HcclReduceOp op,
                        HcclComm comm, aclrtStream stream);
// Elements a unit that one pass takes of such a call.
uint64_t OperatorPass(uint64_t count, HcclDataType type, uint64_t bytes);
// The function of the kernel library; null where there is none.
extern unsigned int (*const OperatorKernel)(void*);

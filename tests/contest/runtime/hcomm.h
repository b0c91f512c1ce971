// Stands for the file that includes a toolkit's headers.
#pragma once
#include "hcomm_stub.h"

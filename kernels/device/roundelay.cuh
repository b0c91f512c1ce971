// The functions that the text of a kernel calls. The text stands before and after the include: first its settings
// (element, op, protocol, vector, pieces), then the functions of the loop form, then the entry.
#pragma once
#include "base.cuh"
#include "numbers.cuh"
#include "moves.cuh"
#include "signals.cuh"
#include "ll.cuh"
#include "queue.cuh"
#include "arith.cuh"
#include "words.cuh"
#include "lane.cuh"
#include "table.cuh"

// What the text of a kernel calls. The text stands before and after the include: first what it is made for (element,
// op, protocol, vector), then the algorithms as their authors wrote them, then the entry.
#pragma once
#include "base.cuh"
#include "numbers.cuh"
#include "moves.cuh"
#include "signals.cuh"
#include "ll.cuh"
#include "arith.cuh"
#include "facts.cuh"
#include "lists.cuh"
#include "regions.cuh"
#include "objects.cuh"
#include "peer.cuh"
#include "lane.cuh"
#include "answers.cuh"
#include "data.cuh"
#include "fifo.cuh"
#include "table.cuh"

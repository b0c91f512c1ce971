//! The structures are those of the headers, the program keeps its signals, and ranks that leave take no message along.


        const Run::Push push = run_.pushes[index_];
        if (push.waits && push.peer == peer) {
            run_.pushes[index_].waits = false;
            return Done(push.reduces ? HcommWriteReduceWithNotifyOnThread(Thread(index_), Channel(peer), push.dst.At(0),
                                                                          push.src.At(0), push.src.bytes / run_.unit,
                                                                          run_.type, run_.op, notify)
                                     : HcommWriteWithNotifyOnThread(Thread(index_), Channel(peer), push.dst.At(0),
                                                                    push.src.At(0), push.src.bytes, notify));
        }

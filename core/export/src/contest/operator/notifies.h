
// The runtime's notifies of each communicator: the caller's stream has come to the call, and it may go on.
struct Notifies {
    aclrtNotify begun;
    aclrtNotify ended;
};
std::mutex g_lock;
std::map<HcclComm, Notifies> g_notifies;

    Notifies pair = {};
    for (u32 i = 0; i < 2; ++i) {
        aclrtNotify& notify = i == 0 ? pair.begun : pair.ended;
        u32 id = 0;
        if (aclrtCreateNotify(&notify, 0) != 0 || aclrtGetNotifyId(notify, &id) != 0) {
            return HCCL_E_RUNTIME;
        }
        all.notifies[i] = id;
    }
    {
        const std::lock_guard<std::mutex> held(g_lock);
        g_notifies[comm] = pair;
    }

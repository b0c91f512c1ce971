    Notifies pair = {};
    {
        const std::lock_guard<std::mutex> held(g_lock);
        pair = g_notifies[comm];
    }
    if (aclrtRecordNotify(pair.begun, stream) != 0) {
        return HCCL_E_RUNTIME;
    }
    CHK_RET(@SUBMIT@);
    return aclrtWaitAndResetNotify(pair.ended, stream, 0) == 0 ? HCCL_SUCCESS : HCCL_E_RUNTIME;

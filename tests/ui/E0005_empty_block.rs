roundelay::collective! {
    // nothing but a comment
}

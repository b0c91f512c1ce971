roundelay::include_collective!("data/no_such_file.coll");

"""Where features come from: open sets, caches people have, CoOp splits, simulated worlds, prompt tiers."""

"""How work is done, resumed and watched: run folders, worker pools, progress. No science in it."""

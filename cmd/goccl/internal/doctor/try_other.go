//go:build !linux

package doctor

// Other systems have no jobs of processes.

func examineDirectory(dir string) directory { return directory{path: dir} }

func tryProbes(string) []Finding { return nil }

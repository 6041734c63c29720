package shm

// Job identifies the job that this process joins, and the process's rank in it.
type Job struct {
	// Name is unique per job and per attempt to start it. It consists of letters, digits, ".",
	// "_" and "-", after an optional "/".
	Name       string
	Rank, Size int // 0 <= Rank < Size <= 65536
	// Secret tells jobs of the same name apart. Ranks with another secret, or with none, belong
	// to another job. The empty string means no secret.
	Secret string
}

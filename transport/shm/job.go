package shm

// Job says which job this process belongs to, and as which rank.
type Job struct {
	// Name is unique per job and per attempt to set it up: letters, digits, ".", "_"
	// and "-", behind an optional "/".
	Name       string
	Rank, Size int // 0 <= Rank < Size <= 65536
}

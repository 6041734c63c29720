package shm

// Job says which job this process belongs to, and as which rank.
type Job struct {
	// Name is unique per job and per attempt to set it up: letters, digits, ".", "_"
	// and "-", behind an optional "/".
	Name       string
	Rank, Size int // 0 <= Rank < Size <= 65536
	// Secret tells jobs of one name apart, if they have one each: ranks that bring another
	// secret, or none, are of another job, and never meet this one's. The empty secret is none.
	Secret string
}

package launchenv

// Error says why a process that was started as one of several ranks cannot be
// one. Its text says what to do.
type Error struct {
	Kind Kind
	// Variables of the environment that it is about: those that are missing, or
	// those whose values are to blame.
	Variables []string
	Message   string
}

func (e *Error) Error() string { return e.Message }

// Kind tells errors apart by what would help.
type Kind int

const (
	// Missing: variables have to be set.
	Missing Kind = iota + 1
	// Contradiction: variables are set to what cannot be.
	Contradiction
	// Nodes: the ranks are not all on this node.
	Nodes
)

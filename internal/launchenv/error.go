package launchenv

// Error is the reason why a process that was started as one of several ranks cannot be
// one. Its text has the remedy.
type Error struct {
	Kind Kind
	// Variables are the environment variables that are missing or have wrong values.
	Variables []string
	Message   string
}

func (e *Error) Error() string { return e.Message }

// Kind classifies errors by their remedy.
type Kind int

const (
	// Missing: variables must be set.
	Missing Kind = iota + 1
	// Contradiction: values are invalid or contradict each other.
	Contradiction
)

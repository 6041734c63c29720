// Package failure has the kinds of failures of a group or a job, and finds who is to blame.
//
// # Model
//
// A [Kind] says how ranks made a group fail. Transports record it, errors are made of it, and the
// report of a rank to its launcher has it.
//
// [Blame] finds the ranks to blame from what each rank of a job reports. Ranks that are goroutines
// and ranks that are processes are judged by the same rules.
package failure

import "fmt"

// Kind classifies failures. The zero Kind is none: a rank failed by itself.
type Kind uint32

// Kinds of failures. Their numbers travel between processes.
const (
	Mismatch Kind = iota + 1 // ranks made different calls
	Rejected                 // ranks rejected the arguments of a call that others accepted
	PeerLost                 // a rank left, or its process ended
	Timeout                  // ranks did not enter a call in time
	Stuck                    // ranks entered a call, but did not progress inside it in time
	Aborted                  // a rank gave up
	Overlap                  // ranks brought the same memory to a call that writes it
	Canceled                 // a context ended; of one rank, never of a group
	Shared                   // a call gave all ranks the error of some, and the group is intact
	Unequal                  // ranks brought different values to a call that compares them, likewise
)

// names are the texts of kinds, in reports as well.
var names = [...]string{
	Mismatch: "mismatch", Rejected: "rejected", PeerLost: "peer_lost", Timeout: "timeout", Stuck: "stuck",
	Aborted: "aborted", Overlap: "overlap", Canceled: "canceled", Shared: "shared", Unequal: "unequal",
}

// String returns the name of the kind, such as "peer_lost".
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

// MarshalText returns the name of the kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText sets the kind from its name.
func (k *Kind) UnmarshalText(name []byte) error {
	for i, known := range names {
		if known == string(name) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("unknown kind of failure %q", name)
}

// IsConsequence reports whether a rank that fails in this way does so because others gave up.
func (k Kind) IsConsequence() bool { return k == Aborted || k == Rejected || k == PeerLost }

// isWait reports whether the rank has waited for others in vain.
func (k Kind) isWait() bool { return k == Timeout || k == Stuck }

// IsDifference reports whether the ranks made calls, or brought values, that do not fit.
func (k Kind) IsDifference() bool { return k == Mismatch || k == Overlap || k == Unequal }

package groupsync

import (
	"sync/atomic"

	"github.com/goccl/goccl/transport"
)

// A line is what a rank brings to a call: 128 bytes, two cache lines, of which
// the second is read only where ranks disagree.
//
//	  0  epoch        8   number of the call, stored last
//	  8  hash         8   of the fingerprint
//	 16  payload     48   small inputs, inline; see memory
//	 64  print       40   the fingerprint
//	104  -           24
type line struct {
	epoch       atomic.Uint64
	hash        uint64
	payload     [transport.InlineBytes]byte
	fingerprint transport.Fingerprint
	_           [24]byte
}

// State is the part of a group that one rank writes and all read: 512 bytes
// without pointers, so that it can lie in memory shared between processes.
//
//	  0  line[0]    128
//	128  line[1]    128
//	256  done         8   last exposed call that this rank is through with
//	264  out          8   last call that it left on a failure
//	272  refusedFirst 8   the latest run of refused calls
//	280  refusedLast  8
//	288  left         8   1: it has left the group
//	296  waitOn       8   whom it sleeps for: rank+1, or everyone; and gaveUp
//	304  token        4   where ranks are processes: what wakes it
//	308  -           76
//	384  resting      8   1: its lane sleeps
//	392  laneToken    4   where ranks are processes: what wakes that
//	396  -            4
//	400  laneWaitOn   8   for whom its lane waits, and since what; and gaveUp (see Lane)
//	408  -          104
type State struct {
	line         [2]line
	done         atomic.Uint64
	out          atomic.Uint64
	refusedFirst atomic.Uint64
	refusedLast  atomic.Uint64
	left         atomic.Uint64
	waitOn       atomic.Uint64
	token        atomic.Uint32
	_            [76]byte
	resting      atomic.Uint64
	laneToken    atomic.Uint32
	_            [4]byte
	laneWaitOn   atomic.Uint64
	_            [104]byte
}

// Tokens returns the words that Processes may use to wake sleepers, in their order;
// several write each.
func Tokens(states []*State) []*atomic.Uint32 {
	tokens := make([]*atomic.Uint32, 2*len(states))
	for rank, s := range states {
		tokens[rank], tokens[len(states)+rank] = &s.token, &s.laneToken
	}
	return tokens
}

// StateBytes is the size of a State, by which arenas lay them out.
const StateBytes = 512

// everyone in waitOn: the rank sleeps until anything happens.
const everyone = ^uint64(0)

// gaveUp in waitOn or laneWaitOn: the wait ended since its time was up.
const gaveUp = 1 << 63

// Words are the words of a group that several ranks write. They are off the hot
// path: a call only loads them.
type Words struct {
	fail     atomic.Uint64 // 0, or 1 + the rank whose failure is the group's
	events   atomic.Uint64 // grows after every refusal, departure and failure
	sleepers atomic.Int64  // how many ranks are parked, or about to
	verdict  atomic.Uint64 // whether the group has come about: undecided, formed or unformed
	_        [96]byte
}

// Values of Words.verdict. It is written once.
const (
	undecided = iota
	formed
	unformed
)

// WordsBytes is the size of Words.
const WordsBytes = 128

// arrived reports whether the state's rank has entered call seq.
func (s *State) arrived(seq uint64) bool { return s.line[seq&1].epoch.Load() >= seq }

// refused reports whether the state's rank has refused call seq. The run's two
// words may be of two runs; then the calls between them were entered by all, and
// nobody asks for those.
func (s *State) refused(seq uint64) bool {
	last := s.refusedLast.Load()
	return seq <= last && seq >= s.refusedFirst.Load()
}

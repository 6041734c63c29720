package groupsync

import (
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// A line is what a rank publishes when it enters a call. It takes 128 bytes, two cache lines.
// Ranks read the second one only if they disagree.
//
//	  0  epoch        8   number of the call, stored last
//	  8  hash         8   of the fingerprint
//	 16  payload     48   a short payload; see memory
//	 64  fingerprint 40
//	104  -           24
type line struct {
	epoch       interleave.Uint64
	hash        uint64
	payload     [transport.InlineBytes]byte
	fingerprint transport.Fingerprint
	_           [24]byte
}

// State is the part of a group that one rank writes and all ranks read. It takes 512 bytes and
// has no pointers, so that processes can share it.
//
//	  0  line[0]       128
//	128  line[1]       128
//	256  done            8   the last call with exposed memory that the rank has completed
//	264  out             8   the last call that it left on a failure
//	272  rejectedFirst   8   first and last call of the latest run of rejected calls
//	280  rejectedLast    8
//	288  departed        8   1: it has left the group
//	296  waitOn          8   1 + the rank that it sleeps for, or anyRank; gaveUp may be set
//	304  token           4   wakes it, if ranks are processes
//	308  -               4
//	312  lostCore        8   the core that it lost while it polled, and when, if ranks are processes
//	320  -              64
//	384  resting         8   1: its P2P sleeps
//	392  p2pToken        4   wakes its P2P, if ranks are processes
//	396  -               4
//	400  p2pWaitOn       8   the rank that its P2P waits for, and its service so far (see p2p.go)
//	408  -             104
type State struct {
	line          [2]line
	done          interleave.Uint64
	out           interleave.Uint64
	rejectedFirst interleave.Uint64
	rejectedLast  interleave.Uint64
	departed      interleave.Uint64
	waitOn        interleave.Uint64
	token         interleave.Uint32
	_             [4]byte
	lostCore      interleave.Uint64
	_             [64]byte
	resting       interleave.Uint64
	p2pToken      interleave.Uint32
	_             [4]byte
	p2pWaitOn     interleave.Uint64
	_             [104]byte
}

// Tokens returns the words that Processes may use to wake sleepers, by sleeper. Each word has
// several writers.
func Tokens(states []*State) []*interleave.Uint32 {
	tokens := make([]*interleave.Uint32, 2*len(states))
	for rank, s := range states {
		tokens[rank], tokens[len(states)+rank] = &s.token, &s.p2pToken
	}
	return tokens
}

// LostCores returns the words in which Processes may note the cores that ranks lose, by rank. Each
// rank writes its own word.
func LostCores(states []*State) []*interleave.Uint64 {
	cores := make([]*interleave.Uint64, len(states))
	for rank, s := range states {
		cores[rank] = &s.lostCore
	}
	return cores
}

// StateBytes is the size of a State in an arena, in bytes.
const StateBytes = 512

// anyRank in waitOn: any rank wakes the sleeper.
const anyRank = ^uint64(0)

// gaveUp in waitOn or p2pWaitOn: the wait has timed out.
const gaveUp = 1 << 63

// Words are the words of a group that several ranks write. A call on the hot path only loads
// them.
type Words struct {
	fail     interleave.Uint64 // 0, or 1 + the rank whose failure is the group's
	events   interleave.Uint64 // grows after each rejected call, departure and failure
	sleepers interleave.Int64  // number of ranks that are parked or about to park
	verdict  interleave.Uint64 // whether the group was formed: undecided, formed or unformed
	_        [96]byte
}

// Values of Words.verdict. It is written once.
const (
	undecided = iota
	formed
	unformed
)

// WordsBytes is the size of Words, in bytes.
const WordsBytes = 128

// isInside reports whether the state's rank has entered call seq and has neither completed nor left
// it.
func (s *State) isInside(seq uint64) bool {
	return s.hasArrived(seq) && s.done.Load() < seq && s.out.Load() < seq
}

// hasArrived reports whether the state's rank has entered call seq.
func (s *State) hasArrived(seq uint64) bool { return s.line[seq&1].epoch.Load() >= seq }

// hasRejected reports whether the state's rank has rejected call seq. The two words may belong to
// two different runs. All ranks have then entered the calls between the runs, and no rank asks
// about those.
func (s *State) hasRejected(seq uint64) bool {
	last := s.rejectedLast.Load()
	return seq <= last && seq >= s.rejectedFirst.Load()
}

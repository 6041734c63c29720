package groupsync

import "time"

// suspectAfter is the longest time between two checks for dead peers by a rank that other
// ranks keep waking without serving it.
const suspectAfter = 50 * time.Millisecond

// suspicion determines when a rank checks whether peers, which are processes, have died. A
// death is no event, and the check takes one system call per peer. A rank checks after each
// sleep that timed out, because a peer may have stored the awaited word and died before it
// woke the sleeper. Otherwise it checks every suspectAfter (rule sleepersSuspect). A rank that
// was woken tests the awaited word first.
type suspicion struct {
	looked    time.Time // when it checked last
	hasArisen bool      // the next look also checks whether peers are dead
}

// arises reports whether it is time to check. woken reports whether a token ended the last
// sleep.
func (s *suspicion) arises(woken bool) bool {
	now := time.Now()
	if woken && s.looked.IsZero() {
		s.looked = now
	}
	if woken && now.Sub(s.looked) < suspectAfter {
		return false
	}
	s.looked = now
	return true
}

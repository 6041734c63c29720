package groupsync

import "time"

// suspectAfter is how long a rank that is woken again and again, though not by the one it
// waits for, goes without a look at whether others are dead.
const suspectAfter = 50 * time.Millisecond

// suspicion says when a rank looks at whether others, which are processes, have died: that
// is no event, and takes a system call for each of them. It does so after a sleep that ran
// out, since a rank that died may have stored what the sleeper waits for and not woken it,
// and else now and then (rule sleepersSuspect). A rank that was woken
// tests what it waits for first.
type suspicion struct{ looked time.Time }

// arises reports whether it is time to look, after a sleep that a token has ended or not.
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

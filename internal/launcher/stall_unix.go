//go:build unix

package launcher

import (
	"fmt"
	"time"
)

const (
	pulsePause   = 500 * time.Millisecond
	leastStopped = 2 * time.Second // without a pulse: a busy machine may be late
	leastUnread  = time.Second
)

// pulse finds that the launcher itself was stopped, as by Ctrl-Z, and read no output.
type pulse struct {
	last  time.Time     // when the launcher ran
	gap   time.Duration // the last time for which it did not
	ended time.Time     // of gap
}

// beat notes that the launcher runs.
func (p *pulse) beat(now time.Time) {
	if gap := now.Sub(p.last); gap > leastStopped {
		p.gap, p.ended = gap, now
	}
	p.last = now
}

// findStall says for how long the ranks' output has not been read, so that ranks that write wait;
// "" if it is read.
func (l *launcher) findStall(now time.Time) string {
	if l.pulse.beat(now); l.pulse.gap > 0 && now.Sub(l.pulse.ended) < leastStopped {
		return fmt.Sprintf("the launcher was stopped for %v", l.pulse.gap.Round(time.Second/10))
	}
	for k, o := range l.outputs {
		begun := o.begun.Load()
		if unread := now.Sub(time.Unix(0, begun)); begun > 0 && unread > leastUnread {
			return fmt.Sprintf("%s has not been read for %v", streamNames[k], unread.Round(time.Second/10))
		}
	}
	return ""
}

package syncmodel

import (
	"fmt"
	"slices"
	"strings"
)

// A property is a promise of the protocol; docs/inside/model.md defines each.
type property string

const (
	dataSafety   property = "data safety"
	memorySafety property = "memory safety"
	agreement    property = "agreement"
	oneVerdict   property = "one verdict"
	rightVerdict property = "right verdict"
	progress     property = "progress"
)

// A violation is a property that does not hold, and the shortest sequence of steps that leads to it.
type violation struct {
	property property
	what     string
	trace    string
}

func (w *violation) String() string {
	return fmt.Sprintf("%s is violated: %s\n%s", w.property, w.what, w.trace)
}

func (v *move) violate(p property, format string, args ...any) {
	if v.m.found == nil {
		v.m.found = &violation{property: p, what: fmt.Sprintf(format, args...)}
	}
}

// readLine reads the plain part of a line. If its owner could write it in the very next step, that is a race.
func (v *move) readLine(q int) byte {
	l := v.line(q)
	owner := v.m.move(v.state, q)
	switch {
	case owner.me.at == writeLine && owner.line(q) == l:
		v.violate(dataSafety, "rank %d reads a line of rank %d, which is about to write it", v.r, q)
	case l.call != v.seq():
		v.violate(dataSafety, "rank %d, in call %d, reads a line of rank %d with call %d", v.r, v.seq(), q, l.call)
	}
	return l.name
}

func (v *move) checkEpoch(epoch uint8) {
	if epoch > v.seq() {
		v.violate(dataSafety, "rank %d, in call %d, finds epoch %d", v.r, v.seq(), epoch)
	}
}

// touchAll stands for all accesses of a body to the memory of other ranks, for the last of which the scheduler
// may take any time.
func (v *move) touchAll() {
	for q := range v.rank[:v.m.ranks] {
		if q != v.r && v.rank[q].exposed != v.seq() {
			v.violate(memorySafety, "rank %d, in call %d, touches memory of rank %d, which is not in it", v.r, v.seq(), q)
		}
	}
}

// noteTorn notes that some ranks may find all they need in call i and others not. That cannot happen where the
// last arriver runs the call for all, nor in a call that ends with a completion.
func (v *move) noteTorn(i uint8) {
	if int(i) < len(v.m.calls[0]) && !v.m.runForAll(v.m.calls[0][i].name) && !completes(v.m.calls[0][i].name) {
		v.me.tore |= 1 << i
	}
}

// completes reports whether a call ends with a completion where each rank runs its own body.
func completes(name byte) bool { return name != inline && name != eager }

// goingOn returns the first call of which it is open whether all ranks will find what they need: not all have
// published it or, if it ends with a completion, not all are done.
func (v *move) goingOn() uint8 {
	for i, c := range v.m.calls[0] {
		ends := completes(c.name) && !v.m.runForAll(c.name)
		for _, q := range v.rank[:v.m.ranks] {
			if c.name != rejection && (int(q.made) <= i || ends && int(q.done) <= i) {
				return uint8(i)
			}
		}
	}
	return uint8(len(v.m.calls[0]))
}

func (v *move) checkAgreement() {
	var torn uint8
	for _, q := range v.rank {
		torn |= q.tore
	}
	for a, ra := range v.rank[:v.m.ranks] {
		for b, rb := range v.rank[:v.m.ranks] {
			notMade := ^uint8(1<<rb.made - 1)
			if bad := ra.ok & (notMade | (rb.failed|rb.rejections)&^torn); bad != 0 {
				v.violate(agreement, "calls (bits) that succeeded on rank %d but not on rank %d: %b", a, b, bad)
			}
		}
	}
}

func (v *move) checkVerdict() {
	for q, other := range v.rank {
		if other.verdict.kind != none && other.verdict != v.me.verdict {
			v.violate(oneVerdict, "rank %d returns %v, rank %d returned %v", v.r, v.me.verdict, q, other.verdict)
		}
	}
}

// checkEnd checks states without successors.
func (v *move) checkEnd(want string) {
	for r, q := range v.rank {
		if q.at != end {
			v.violate(progress, "rank %d waits forever", r)
		}
	}
	if !slices.Contains(strings.Fields(want), v.fail.kind.String()) {
		v.violate(rightVerdict, "the group ends with %v instead of %s", v.fail, want)
	}
}

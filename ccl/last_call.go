package ccl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport"
)

// LastCall is the last call that some ranks of a group have made, and what they do now.
type LastCall struct {
	Ranks     []int
	Seq       uint64 // its number, 0 if there is none, or none that this rank knows
	Operation string // "" if this rank does not know it
	Label     string // "" if it has none, or none that this rank knows
	DType     DType  // of the elements, 0 if the call moves none
	Count     int
	Algorithm string // the entry in ccl.yaml
	Rejected  bool   // the ranks rejected their arguments
	Group     string // of one of Others: the name of its group, "" for the default group
	// Others are the calls of other groups that the ranks are in, or in which these groups failed.
	Others []LastCall

	standing standing
}

// standing is what is known of ranks beside their last call.
type standing struct {
	state       flight.State // of the call
	isThis      bool         // the call is the one of the error
	isSilent    bool         // the ranks have made no call of the group
	isElsewhere bool         // they are on another node, whose records this rank cannot read
	isIdle      bool         // they are in no call and wait for no message
	message     string       // of this group that has not ended, or else the last one if it has failed
	isFailed    bool         // that message
	isSender    bool         // it is a send to this rank
	hasLeft     bool         // they have closed the group
	hasSteps    bool         // they have marked steps of the group
}

// String returns a text such as "rank 1 last made call 4, all_reduce of 8 float32 by direct, and is
// in no call".
func (l LastCall) String() string {
	s, are, have := &l.standing, "is", "has"
	if len(l.Ranks) > 1 {
		are, have = "are", "have"
	}
	var does []string
	add := func(is bool, text string) {
		if is {
			does = append(does, text)
		}
	}

	// In the order of events.
	isThis := s.isThis && !l.Rejected
	add(s.isElsewhere, are+" on another node, whose records this rank cannot read (GOCCL_FLIGHT=DIR writes them)")
	add(s.isSilent, "made no call of this group")
	add(l.Seq > 0 && !isThis, fmt.Sprintf("last made call %d", l.Seq)+l.what())
	add(isThis, "came to this call"+l.what())
	add(isThis && !s.state.After(flight.StateBegun), "did not enter it")

	add(isThis && s.state == flight.StateInside, "did not end it")
	add(isThis && s.state == flight.StateFailed, "failed in it")
	add(l.Rejected, "rejected it")
	add(s.hasLeft, "left the group")
	for _, other := range l.Others {
		add(true, other.inOther(are))
	}
	add(s.message != "" && !s.isFailed, have+" not ended "+s.message)
	add(s.message != "" && s.isFailed, "failed in "+s.message)
	add(s.isIdle, are+" in no call")
	return transport.RanksText(l.Ranks) + " " + strings.Join(does, ", and ")
}

// inOther returns that ranks are in the call, one of Others, or have failed in it.
func (l *LastCall) inOther(verb string) string {
	group := "the default group"
	if l.Group != "" {
		group = "group " + l.Group
	}
	if l.standing.state == flight.StateFailed {
		verb = "failed"
	}
	return fmt.Sprintf("%s in call %d%s on %s", verb, l.Seq, l.what(), group)
}

// what returns what the call is, after a comma, or "".
func (l *LastCall) what() string {
	if l.Operation == "" {
		return ""
	}
	return ", " + callText(l.Operation, l.Label, l.DType, l.Count, l.Algorithm)
}

// stepsHint says how ranks come to wait for each other in different groups of which one has steps,
// as that of a Reducer of package ddp does.
const stepsHint = "all ranks make the same calls of a Reducer, and of several in one order: steps, Save, Load, Verify; " +
	"ranks that have fewer steps train within Join"

// lastTexts returns what ranks did last as texts, and a hint if that explains a wait for them.
// hidesLeft: the text before these says that they have left the group.
func lastTexts(all []LastCall, hidesLeft bool) (texts []string) {
	isOut := false
	for _, l := range all {
		isOut = isOut || l.standing.hasSteps && (l.standing.hasLeft || l.standing.isElsewhere || l.Others != nil) ||
			slices.ContainsFunc(l.Others, func(other LastCall) bool { return other.standing.hasSteps })
		l.standing.hasLeft = l.standing.hasLeft && !hidesLeft
		texts = append(texts, l.String())
	}
	if isOut {
		texts = append(texts, stepsHint)
	}
	return texts
}

// lastCalls returns what other ranks did last on this group, as far as this rank knows, for an
// error of call number seq, or of a message if seq is 0. areLost: they have died or left the group.
func (l *records) lastCalls(ranks []int, seq uint64, areLost bool) (all []LastCall) {
	if slices.Contains(ranks, l.rank) {
		return nil
	}
	for _, r := range ranks {
		if r < 0 || r >= l.size {
			continue // the failure comes from shared memory
		}
		last, ok := l.lastCall(r)
		if !ok || areLost && last.standing.isElsewhere {
			continue
		}
		s := &last.standing
		s.isThis = seq > 0 && last.Seq == seq
		if areLost {
			s.isIdle, s.message, s.isSender = false, "", false
		}
		if areLost && !s.hasLeft { // it has died
			last.Others = nil
		}
		if s.isSilent && last.Others == nil && s.message == "" && (areLost || seq == 0) { // a message's error says nothing of calls
			continue
		}

		i := slices.IndexFunc(all, func(have LastCall) bool {
			have.Ranks = nil
			return have.String() == last.String()
		})
		if i < 0 {
			i = len(all)
			all = append(all, last)
		}
		all[i].Ranks = append(all[i].Ranks, r)
	}
	return all
}

// lastCall returns what a rank of this group did last on it, and does on other groups, without the
// rank. It is false if this rank cannot know.
func (l *records) lastCall(rank int) (last LastCall, ok bool) {
	if l.recorder == nil {
		return last, false
	}

	read, ok := l.read(rank)
	if !ok {
		here, _ := l.read(l.rank)
		placed, ok := l.ep.(transport.Nodes)
		ok = ok && placed.Nodes()[rank] != placed.Nodes()[l.rank]
		last.standing = standing{isElsewhere: ok, hasSteps: hasSteps(&here, l.lane.Group())}
		return last, ok
	}

	var others []LastCall
	ok = false
	for _, g := range read.Groups {
		call := lastOf(g.Calls)
		call.standing.hasLeft = g.Left
		call.standing.hasSteps = hasSteps(&read, g.ID)

		if g.ID == l.lane.Group() {
			last, ok = call, true
		} else if call.isOpen() && !g.Left && l.level == nil {
			call.Group = g.Name
			others = append(others, call)
		}
	}

	last.Others = others
	s := &last.standing
	s.isIdle = others == nil && read.Hidden == 0 && !last.isOpen()
	for i, m := range read.Messages {
		s.isIdle = s.isIdle && m.State == flight.StateDone
		isFailed := m.State == flight.StateFailed && i == len(read.Messages)-1 // perhaps with the group, just now
		if (m.State == flight.StateBegun || isFailed && s.message == "") && m.Group == l.lane.Group() && m.Kind != "" {
			s.message, s.isFailed, s.isSender = m.What(), isFailed, m.Kind == "send" && m.Peer == l.rank
		}
	}
	return last, ok || others != nil
}

// read returns what a rank of this group has recorded. It is false if this rank cannot know.
func (l *records) read(rank int) (r flight.Rank, ok bool) {
	_ = l.vanishing(func() { r, ok = flight.Read(l.recorder.memory.Part(l.globalRank(rank))) })
	return r, ok
}

// hasSteps reports whether a rank has marked steps of a group.
func hasSteps(r *flight.Rank, group string) bool {
	return slices.ContainsFunc(r.Marks, func(m flight.Mark) bool { return m.Group == group })
}

// lastOf returns the last of calls, the oldest first.
func lastOf(calls []flight.Call) (last LastCall) {
	if len(calls) == 0 {
		last.standing.isSilent = true
		return last
	}
	c := calls[len(calls)-1]
	last = LastCall{
		Seq: c.Number, Operation: c.Collective, Label: c.Label, Count: c.Count, Algorithm: c.Algorithm,
		Rejected: c.State == flight.StateRejected, standing: standing{state: c.State},
	}
	_ = last.DType.UnmarshalText([]byte(c.Type)) // it has none if the call moves none
	return last
}

// isOpen reports whether ranks have begun the call and not ended it, or have failed in it.
func (l *LastCall) isOpen() bool {
	return l.Seq > 0 && l.standing.state != flight.StateDone && !l.Rejected
}

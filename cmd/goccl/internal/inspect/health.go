package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/flight"
)

// halts are the states of processes that do not run; see shm.RunningJob.
var halts = map[string]string{
	"stopped": "is stopped: kill -CONT lets it go on",
	"traced":  "is held by a debugger",
	"zombie":  "is a zombie: it has ended, and its parent has not waited for it",
	"gone":    "has ended",
}

// Judge returns an error if a running job does not go on by itself: a rank that has not left it is
// stopped, traced or dead, a rank's last call has failed, or ranks differ in a call.
//
// A call that lasts longer than late counts as well, unless late is 0.
func (j *Records) Judge(late time.Duration) error {
	if j.Running == nil {
		return nil
	}

	var halted []string
	for i, state := range j.Running.States {
		rank := j.Running.Number(i)
		who := fmt.Sprintf("rank %d", rank)
		if rank < 0 {
			who = "a rank that has not begun"
		}
		if pid := j.Running.PIDs[i]; pid != 0 {
			who += fmt.Sprintf(" (pid %d)", pid)
		}

		if why := halts[state]; why != "" && !j.hasLeft(rank) {
			halted = append(halted, who+" "+why)
		}
	}
	if halted != nil {
		return fmt.Errorf("job %s: %s", j.Running.Name, strings.Join(halted, "; "))
	}

	for _, g := range j.Groups() {
		if err := j.judgeCalls(g, late); err != nil {
			return err
		}
	}
	return nil
}

// hasLeft reports whether a rank has left the job's first group.
func (j *Records) hasLeft(rank int) bool {
	return slices.ContainsFunc(j.Ranks, func(r flight.Rank) bool {
		return r.Rank == rank && slices.ContainsFunc(r.Groups, func(g flight.GroupCalls) bool { return g.Name == "" && g.Left })
	})
}

func (j *Records) judgeCalls(g *Group, late time.Duration) error {
	d := g.Difference()
	if d != nil && len(d.Calls) > 1 {
		return fmt.Errorf("job %s: ranks made different calls number %d (%s)", j.Running.Name, d.Number, g.Title())
	}

	for _, m := range g.Members {
		if len(m.Calls) == 0 || m.Left {
			continue
		}
		c := m.Calls[len(m.Calls)-1]
		if failed := c.State == flight.StateFailed; !failed && (late == 0 || j.age(c.State, c.Begun, c.Ended) <= late) {
			continue
		}
		what := j.aged(c.String(), c.State, c.Begun, c.Ended)

		if d != nil && d.Number == c.Number {
			what += ", to which " + ranksText(d.Absent) + " did not come"
		}
		return fmt.Errorf("job %s: rank %d: %s", j.Running.Name, m.Global, what)
	}
	return nil
}

// age returns for how long a call or message has lasted when the records were written; 0 if it is
// done, or its times are not known.
func (j *Records) age(state flight.State, begun, ended time.Time) time.Duration {
	if ended.IsZero() {
		ended = j.Written
	}
	if begun.IsZero() || state == flight.StateDone {
		return 0
	}
	return ended.Sub(begun)
}

// aged adds its age to the text of a call or message, which ends with its state, such as "(begun)":
// "(begun for 42s)".
func (j *Records) aged(what string, state flight.State, begun, ended time.Time) string {
	age := j.age(state, begun, ended).Truncate(time.Second)
	if age <= 0 {
		return what
	}
	return fmt.Sprintf("%s for %v)", what[:len(what)-1], age)
}

// Health is how a running job does.
type Health struct {
	Job     string       `json:"job"`
	Problem string       `json:"problem,omitzero"` // why it does not go on
	IsGone  bool         `json:"gone,omitzero"`    // all its processes have ended
	Ranks   []RankHealth `json:"ranks"`
	Slow    *int         `json:"slow,omitzero"` // the rank that makes the others wait
	Calls   int          `json:"calls"`         // that show who waits, and how long they lasted
	Seconds float64      `json:"seconds"`
}

// RankHealth is what a rank does, and how long it makes others wait.
type RankHealth struct {
	Rank    int     `json:"rank"`
	PID     int     `json:"pid,omitzero"`
	State   string  `json:"state"` // of its process
	Call    string  `json:"call,omitzero"`
	Seconds float64 `json:"call_seconds,omitzero"` // since the call has begun, if that is known
	Share   float64 `json:"waiting_caused_share"`  // of all waiting
	Ratio   float64 `json:"waiting_caused_ratio"`  // of the time of each other rank
}

// Health returns how a running job does, in which no call may last longer than limit.
func (j *Records) Health(limit time.Duration) *Health {
	w := flight.NewWindow()
	w.Add(j.Ranks, j.Written)
	waiting := w.Waiting()
	h := &Health{Job: j.Running.Name, IsGone: true, Calls: waiting.Calls, Seconds: waiting.Seconds}
	if slow := waiting.Slow(-1); slow >= 0 {
		h.Slow = &slow
	}
	if err := j.Judge(limit); err != nil {
		h.Problem = err.Error()
	}

	for seat, state := range j.Running.States {
		rank := j.Running.Number(seat)
		r := RankHealth{Rank: rank, PID: j.Running.PIDs[seat], State: state, Share: waiting.Of[rank].Share, Ratio: waiting.Of[rank].Ratio}
		h.IsGone = h.IsGone && (state == "gone" || state == "zombie")

		i := slices.IndexFunc(j.Ranks, func(known flight.Rank) bool { return known.Rank == rank })
		switch {
		case i < 0:
			r.Call = "no call is recorded"
		case j.hasLeft(rank):
			r.Call = "it has left the job"
		default:
			r.Call, r.Seconds = j.currentCall(j.Ranks[i])
		}
		h.Ranks = append(h.Ranks, r)
	}
	return h
}

// currentCall returns the call in which a rank has been for the longest time, or else its oldest
// message that has not ended, and for how many seconds.
func (j *Records) currentCall(r flight.Rank) (what string, seconds float64) {
	const outsideCalls = "in no call"
	what = outsideCalls
	for _, g := range r.Groups {
		if len(g.Calls) == 0 || g.Left {
			continue
		}
		c := g.Calls[len(g.Calls)-1]
		if age := j.age(c.State, c.Begun, c.Ended).Seconds(); !c.State.HasEnded() && (seconds == 0 || age > seconds) {
			what, seconds = j.aged(c.String(), c.State, c.Begun, c.Ended), age
		}
	}

	for _, m := range r.Messages {
		if what == outsideCalls && !m.State.HasEnded() {
			what, seconds = j.aged(m.String(), m.State, m.Begun, m.Ended), j.age(m.State, m.Begun, m.Ended).Seconds()
		}
	}
	return what, seconds
}

// Write writes a line for each rank, and who is slow.
func (h *Health) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "job %s, %d ranks\n", h.Job, len(h.Ranks))
	for _, r := range h.Ranks {
		fmt.Fprintf(&b, "  rank %d: %s", r.Rank, r.Call)
		if r.State != "running" {
			b.WriteString("; " + cmp.Or(halts[r.State], "in another pid namespace"))
		}
		if r.Share >= 0.005 { // 1 %, as it is written
			fmt.Fprintf(&b, "; %.0f%% of the waiting is for it, %.1f%% of the others' time", 100*r.Share, 100*r.Ratio)
		}
		b.WriteString("\n")
	}

	switch {
	case h.Calls == 0:
		b.WriteString("who is slow is not known: no calls of the last minute have times (GOCCL_FLIGHT_TIMES=true takes those of short calls)\n")
	case h.Slow == nil:
		fmt.Fprintf(&b, "no rank is slow, in the last %d calls (%.3g s)\n", h.Calls, h.Seconds)
	default:
		i := slices.IndexFunc(h.Ranks, func(r RankHealth) bool { return r.Rank == *h.Slow })
		fmt.Fprintf(&b, "rank %d is slow: the others wait %.0f%% of their time for it, in the last %d calls (%.3g s)\n", *h.Slow, 100*h.Ranks[i].Ratio, h.Calls, h.Seconds)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

package inspect

import (
	"fmt"
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
	for rank, state := range j.Running.States {
		who := fmt.Sprintf("rank %d", rank)
		if pid := j.Running.PIDs[rank]; pid != 0 {
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
			what += ", to which " + ranksText(d.Absent) + " has not come"
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

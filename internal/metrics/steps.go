package metrics

import (
	"strconv"
	"time"

	"github.com/goccl/goccl/internal/flight"
)

// step is where a rank is in a training, by its marks.
type step struct {
	number int                      // of the step that it is in
	parts  map[string]time.Duration // of the step before; nil: not all of its marks are there
}

// eachStep calls f for each rank and series of groups with marks, and with the labels of both.
func eachStep(j *Job, f func(s step, labels ...string)) {
	for _, r := range j.Ranks {
		labels, marks := map[string]string{}, map[string][]flight.Mark{}
		for _, g := range r.Groups {
			labels[g.ID] = groupLabel(g.Name)
		}
		for _, m := range r.Marks {
			if label := labels[m.Group]; label != "" {
				marks[label] = append(marks[label], m)
			}
		}

		for label, of := range marks {
			f(stepOf(of, r.Marks[0].Number == 1), "rank", strconv.Itoa(r.Rank), "group", label)
		}
	}
}

// stepOf returns the step by the marks of a group. isWhole says that there were no earlier ones.
func stepOf(marks []flight.Mark, isWhole bool) step {
	s := step{number: marks[len(marks)-1].Step}
	end := len(marks) - 1
	for end > 0 && marks[end-1].Step == s.number {
		end--
	}
	begin := end
	for begin > 0 && marks[begin-1].Step == marks[end-1].Step {
		begin--
	}

	if begin == 0 && !isWhole {
		return s
	}
	for i := begin; i < end; i++ {
		if s.parts == nil {
			s.parts = map[string]time.Duration{}
		}
		s.parts[marks[i].Label] += marks[i+1].At.Sub(marks[i].At)
	}
	return s
}

//go:build interleave

package interleave

import (
	"fmt"
	"strconv"
	"strings"
)

// Choices are what happens instead of what would have, in their order. If there are none, and they
// are not nil, the running goroutine goes on for as long as it can.
type Choices []Choice

// Choice is what happens at a pick instead of what would have. Task is a task's number, or one of
// the values below.
type Choice struct{ Pick, Task int }

// Values of Choice.Task. The poll of task n ends by endsPoll-n.
const (
	advances = -1
	endsPoll = -2
)

// String returns what ParseChoices parses, such as "12:3,80:clock,91:poll4": at pick 12 goroutine 3
// goes on, at pick 80 the clock advances, and at pick 91 the poll of goroutine 4 is ended.
func (c Choices) String() string {
	if c == nil {
		return ""
	}
	if len(c) == 0 {
		return "none"
	}

	texts := make([]string, len(c))
	for i, choice := range c {
		switch {
		case choice.Task == advances:
			texts[i] = fmt.Sprintf("%d:clock", choice.Pick)
		case choice.Task <= endsPoll:
			texts[i] = fmt.Sprintf("%d:poll%d", choice.Pick, endsPoll-choice.Task)
		default:
			texts[i] = fmt.Sprintf("%d:%d", choice.Pick, choice.Task)
		}
	}
	return strings.Join(texts, ",")
}

// ParseChoices parses what Choices.String has returned.
func ParseChoices(text string) (Choices, error) {
	switch text {
	case "":
		return nil, nil
	case "none":
		return Choices{}, nil
	}

	var c Choices
	for _, part := range strings.Split(text, ",") {
		pick, task, _ := strings.Cut(part, ":")
		choice := Choice{Task: advances}
		var err, taskErr error
		choice.Pick, err = strconv.Atoi(pick)

		if number, isPoll := strings.CutPrefix(task, "poll"); task != "clock" {
			choice.Task, taskErr = strconv.Atoi(number)
			if isPoll {
				choice.Task = endsPoll - choice.Task
			}
		}
		if err != nil || taskErr != nil {
			return nil, fmt.Errorf("interleave: %q is no choice: it has the form 12:3, 12:clock or 12:poll3", part)
		}
		c = append(c, choice)
	}
	return c, nil
}

// Shrink looks for options with which run fails by fewer choices than with o. It calls run so many
// times at most; run returns what Run has, and whether it has failed in the way that is looked for.
// ok is false if run does not fail again when it is given the choices of its seed.
func Shrink(o Options, runs int, run func(Options) (r Result, hasFailed bool)) (shrunk Options, ok bool) {
	o.IsRecorded = true
	r, hasFailed := run(o)
	if !hasFailed {
		return o, false
	}

	o.Choices = r.Choices
	try := func(c Choices) bool {
		runs--
		next := o
		next.Choices = c

		r, hasFailed := run(next)
		if hasFailed {
			o.Choices = r.Choices // without those that were not possible
		}
		return hasFailed
	}
	if !try(r.Choices) {
		return o, false
	}

	// From the end: what is removed there does not change the meaning of the choices before it.
	// It ends with a round that removes none.
	for size := len(o.Choices); size > 0 && runs > 0; {
		before := len(o.Choices)
		for end := before; end > 0 && runs > 0; {
			begin := max(end-size, 0)
			try(append(append(Choices{}, o.Choices[:begin]...), o.Choices[end:]...))
			end = min(begin, len(o.Choices))
		}

		if len(o.Choices) == before || size > len(o.Choices) {
			size = min(size, len(o.Choices)+1) / 2
		}
	}
	o.IsRecorded = false
	return o, true
}

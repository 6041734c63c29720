package measure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl/config"
)

// Mistake is a value with which no case can be measured.
type Mistake struct {
	Of      MistakeOf
	Value   string // as given: an entry, a transport, or ENTRY.KEY
	Message string
}

// MistakeOf is what a value is given for.
type MistakeOf string

// What a Mistake can be about, by the names of flags.
const (
	OfAlgorithm MistakeOf = "algorithm"
	OfTransport MistakeOf = "transport"
	OfParam     MistakeOf = "param"
)

// Error names the flag.
func (m *Mistake) Error() string { return fmt.Sprintf("--%s %s: %s", m.Of, m.Value, m.Message) }

// Check returns a *Mistake for a value of the jobs, combinations of one command whose configurations Vary has
// changed, with which no case can be measured: a transport that does not exist, an entry that none of the
// configurations has, a parameter that no algorithm of the entry takes.
func Check(jobs []*Job) error {
	for _, j := range jobs {
		if err := mistakeOf(j.resolveOne(config.Default(), ""), ""); err != nil {
			return &Mistake{OfTransport, j.Transport, err.Message}
		}
	}
	for _, v := range jobs[0].variants() {
		if v.entry == Auto {
			continue
		}
		having := slices.DeleteFunc(slices.Clone(jobs), func(j *Job) bool { return !j.has(v.entry) })
		if len(having) == 0 {
			of := OfParam
			if slices.Contains(jobs[0].Entries, v.entry) {
				of = OfAlgorithm
			}
			if err := mistakeOf(jobs[0].resolveOne(jobs[0].Config, v.entry), ""); err != nil {
				return &Mistake{of, v.entry, err.Message}
			}
		}
		if err := faultyParams(having, v); err != nil {
			return err
		}
	}
	return nil
}

// faultyParams returns the mistake in the parameters of a variant if all jobs find one.
func faultyParams(jobs []*Job, v variant) error {
	var first *config.Error
	for _, j := range jobs {
		err := mistakeOf(j.resolveOne(j.Config, ""), "algorithms."+v.name()+".params")
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		return nil
	}
	key, message, _ := strings.Cut(first.Message, ": ")
	if slices.ContainsFunc(jobs[0].Params, func(p Param) bool { return p.Entry == v.entry && p.Key == key }) {
		return &Mistake{OfParam, v.entry + "." + key, message}
	}
	return &Mistake{OfParam, v.entry, first.Message}
}

// resolveOne returns the error of a group of one rank with a configuration.
func (j *Job) resolveOne(c *config.Config, algorithm string) error {
	_, err := c.Resolve(config.Request{Ranks: 1, Transport: j.Transport, Algorithm: algorithm})
	return err
}

// mistakeOf returns the first mistake about a key in an error of a configuration; any if key is "".
func mistakeOf(err error, key string) *config.Error {
	if all, ok := errors.AsType[config.Errors](err); ok {
		if i := slices.IndexFunc(all, func(e *config.Error) bool { return key == "" || e.Key == key }); i >= 0 {
			return all[i]
		}
		return nil
	}
	if one, ok := errors.AsType[*config.Error](err); ok && (key == "" || one.Key == key) {
		return one
	}
	return nil
}

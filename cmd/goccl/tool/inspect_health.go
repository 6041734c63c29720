package tool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
)

// health shows the health of a job, or of all.
func (c *inspectCommand) health(stdout io.Writer) error {
	if c.Trace != "" || c.Step != "" || c.Late != 0 {
		return usageError{errors.New("--health excludes --late, --step and --trace")}
	}
	names := []string{c.What}
	if c.What == "" {
		jobs, err := inspect.Jobs()
		if names, err = namesOf(jobs, err); err != nil {
			return unhealthyError{err, 2}
		}
	}

	var all []*inspect.Health
	var problems []error
	status := 0

	for _, name := range names {
		j, err := inspect.Running(name)
		if err != nil {
			return unhealthyError{err, 2}
		}

		h := j.Health(cmp.Or(c.Limit, 30*time.Second))
		all = append(all, h)
		switch {
		case h.IsGone:
			problems, status = append(problems, fmt.Errorf("job %s: all its processes have ended", h.Job)), 2
		case h.Problem != "":
			problems, status = append(problems, errors.New(h.Problem)), max(status, 1)
		}
	}

	err := show(stdout, c.JSON, all, func(w io.Writer) error {
		for _, h := range all {
			if err := h.Write(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || status == 0 {
		return err
	}
	return unhealthyError{errors.Join(problems...), status}
}

// namesOf returns the names of the running jobs. It is an error if there are none.
func namesOf(jobs []inspect.Listed, err error) (names []string, _ error) {
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	if err == nil && names == nil {
		err = errors.New("no job of this user is running")
	}
	return names, err
}

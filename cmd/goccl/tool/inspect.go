package tool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
	"github.com/goccl/goccl/cmd/goccl/internal/timeline"
)

// inspectCommand is `goccl inspect`.
type inspectCommand struct {
	What   string        `arg:"" optional:"" name:"dir|job" help:"A directory of flight recorders, or the name of a running job of this user. Without it the running jobs are listed."`
	JSON   bool          `name:"json" help:"List the running jobs, or their health, as one JSON document."`
	Step   string        `placeholder:"FILE" help:"Draw a step of a training as a picture: what each rank computes, sends and waits for. FILE.svg, or FILE.json for Chrome's trace viewer and Perfetto."`
	Late   time.Duration `placeholder:"5m" help:"Exit with status 3 as well if a call of the job has lasted longer."`
	Health bool          `help:"Show what each rank does, and which one is slow, of a running job, or of all of this user. The exit status is 0 if they go on, 1 if a call lasts longer than --limit or a job does not go on, 2 if there is none, or it cannot be read."`
	Limit  time.Duration `placeholder:"30s" help:"Of --health: how long a call may last."`
	Trace  string        `placeholder:"FILE" help:"Write the calls as a timeline in the format of Chrome's trace viewer and of Perfetto."`
}

// Help returns the text of `goccl inspect --help` beside the flags.
func (*inspectCommand) Help() string {
	return `A rank's flight recorder has its last calls and messages. It lies in the job's memory. With GOCCL_FLIGHT=DIR, dist.WithFlight or goccl run --flight DIR it is written to files when the job fails.

Without an argument the running jobs are listed: the name of each, its number of ranks, the process and the program of its first rank that runs, and its age.

Shown of a job are each rank's last call in each group, the first call on which ranks differ, and messages that have not ended.

The exit status is that of a health check of one job; the list has 0. It is 0 if the job goes on, or its files were read; 3 if a rank of a running job is stopped, held by a debugger, or dead without having left the job, if a call has failed or ranks differ in one, and after --late; 1 if there is no such job, or it cannot be read; 2 if the command line is wrong.

--step draws the step in which the job has failed, or else the last that has ended on all ranks. Package ddp marks steps, and so can any program (ccl.Communicator.Mark).`
}

// Run runs the command.
func (c *inspectCommand) Run(stdout io.Writer) error {
	switch {
	case c.Limit < 0 || c.Limit > 0 && !c.Health:
		return usageError{fmt.Errorf("--limit %v: want more than 0, beside --health", c.Limit)}
	case c.Health:
		return c.health(stdout)
	case c.What == "":
		return c.list(stdout)
	}

	if c.JSON {
		return usageError{errors.New("--json lists the running jobs: leave out the directory or job")}
	}
	step, ok := map[string]func(io.Writer, *inspect.Records) error{".svg": timeline.StepSVG, ".json": timeline.StepTrace}[filepath.Ext(c.Step)]
	if !ok && c.Step != "" {
		return usageError{fmt.Errorf("--step %s: the name must end in .svg or .json", c.Step)}
	}

	j, err := c.read()
	if err != nil {
		return err
	}

	for _, picture := range []struct {
		file  string
		write func(io.Writer, *inspect.Records) error
	}{{c.Trace, timeline.Trace}, {c.Step, step}} {
		if picture.file == "" {
			continue
		}

		var b strings.Builder
		if err := picture.write(&b, j); err != nil {
			return err
		}
		if err := os.WriteFile(picture.file, []byte(b.String()), 0o644); err != nil {
			return err
		}
	}

	if err := j.Write(stdout); err != nil {
		return err
	}
	if err := j.Judge(c.Late); err != nil {
		return unhealthyError{err, 3}
	}
	return nil
}

// unhealthyError says why a job does not go on.
type unhealthyError struct {
	error
	status int
}

// ExitCode implements kong.ExitCoder.
func (e unhealthyError) ExitCode() int { return e.status }

// read reads a directory of documents, or a running job.
func (c *inspectCommand) read() (*inspect.Records, error) {
	info, err := os.Stat(c.What)
	if err == nil && info.IsDir() {
		return inspect.Load(c.What)
	}
	j, failed := inspect.Running(c.What)
	if failed != nil && err == nil {
		return nil, fmt.Errorf("%w; of a file name the directory", failed)
	}
	return j, failed
}

func (c *inspectCommand) list(stdout io.Writer) error {
	if c.Trace != "" || c.Step != "" || c.Late != 0 {
		return usageError{errors.New("name a directory of flight recorders, or a running job")}
	}
	jobs, err := inspect.Jobs()
	if err != nil {
		return err
	}
	return show(stdout, c.JSON, jobs, func(w io.Writer) error { return writeJobs(w, jobs, time.Now()) })
}

const noPID = `a job without PID: elsewhere, its processes are in another pid namespace, such as a container's, and have other ids there;
gone, all have ended, and another process, such as their launcher, still has the job's memory
`

func writeJobs(w io.Writer, jobs []inspect.Listed, now time.Time) error {
	if len(jobs) == 0 {
		_, err := fmt.Fprintln(w, "no job of this user is running")
		return err
	}

	rows := [][]string{{"JOB", "RANKS", "PID", "AGE", "STATE", "PROGRAM"}}
	legend := ""
	for _, j := range jobs {
		pid := "-"
		if p := j.PID(); p != 0 {
			pid = strconv.Itoa(p)
		} else {
			legend = noPID
		}
		rows = append(rows, []string{j.Name, strconv.Itoa(j.Ranks), pid, j.Age(now).String(), j.State(), orDash(j.Program)})
	}

	var b bytes.Buffer
	writeTable(&b, rows)
	b.WriteString(legend)
	_, err := w.Write(b.Bytes())
	return err
}

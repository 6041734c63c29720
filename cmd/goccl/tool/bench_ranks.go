package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/goccl/goccl/cmd/goccl/internal/doctor"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/launcher"
	"github.com/goccl/goccl/transport/shm"
)

// ranks hosts the ranks of `goccl bench`: goroutines of this process, or processes. The processes
// are those of the launcher that started this one, or of a job of its own.
type ranks struct {
	team      *measure.Team // of the launcher that started this process
	processes *processes    // of the last case that ran on processes
	stderr    io.Writer
}

// measure measures a case on ranks of the transport that the job or its configuration asks for. A case that the job
// cannot measure has a row that tells why.
func (r *ranks) measure(ctx context.Context, job *measure.Job, c measure.Case) (measure.Result, error) {
	settings, err := job.Possible(c)
	if err != nil {
		return job.Unmeasured(c, measure.Row{Refused: err.Error()}), nil
	}
	if r.team != nil {
		job.Team = r.team
		return job.Measure(ctx, c)
	}
	if settings.Transport() != shm.Name {
		return job.Measure(ctx, c)
	}
	if r.processes == nil || r.processes.ranks != c.Ranks {
		if err := r.close(); err != nil {
			return measure.Result{}, err
		}
		if r.processes, err = startProcesses(c.Ranks, r.stderr); err != nil {
			return measure.Result{}, err
		}
	}
	result, ended, err := r.processes.measure(ctx, question{*job, c})
	if ended {
		r.processes = nil
	}
	return result, err
}

// close ends the processes that are left.
func (r *ranks) close() error {
	if r.processes == nil {
		return nil
	}
	p := r.processes
	r.processes = nil
	return p.end()
}

// processes is a job of `goccl bench --serve`, started by the launcher of `goccl run`. Its rank 0
// reads questions from its standard input and writes answers to its standard output.
type processes struct {
	ranks     int
	questions *os.File
	answers   chan answer
	signals   chan os.Signal
	ended     chan struct{}
	err       error // of the job, once ended
}

// question is a case to measure, as a line of JSON.
type question struct {
	Job  measure.Job
	Case measure.Case
}

// answer is the result of a question, or why there is none.
type answer struct {
	Result measure.Result
	Error  string
}

func startProcesses(n int, stderr io.Writer) (*processes, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	input, questions, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &processes{ranks: n, questions: questions, answers: make(chan answer, 1), signals: make(chan os.Signal, 1), ended: make(chan struct{})}
	lines, output := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		for d := json.NewDecoder(lines); ; {
			var a answer
			if d.Decode(&a) != nil {
				_, _ = io.Copy(io.Discard, lines) // what the ranks print besides
				return
			}
			p.answers <- a
		}
	}()
	job := launcher.Spec{
		Ranks: n, Program: program, Args: []string{"goccl", "bench", "--serve"}, Environment: os.Environ(),
		Stdin: input, Stdout: output, Stderr: stderr, NoPrefix: true, Quiet: true, Memory: memory, Signals: p.signals,
	}
	go func() {
		_, p.err = job.Run(context.Background())
		_ = input.Close()
		_ = output.Close()
		<-read
		close(p.ended)
	}()
	return p, nil
}

// measure returns the answer to a question. If a rank fails, the job has ended, and the error is the
// launcher's, which names the rank.
func (p *processes) measure(ctx context.Context, q question) (_ measure.Result, ended bool, _ error) {
	text, err := json.Marshal(q)
	if err != nil {
		return measure.Result{}, false, err
	}
	_, asked := p.questions.Write(append(text, '\n')) // fails if the job has ended, and then ended tells why
	select {
	case a := <-p.answers:
		if a.Error != "" {
			return measure.Result{}, false, errors.New(a.Error)
		}
		return a.Result, false, nil
	case <-p.ended:
		return measure.Result{}, true, cmp.Or(p.err, asked, errors.New("the ranks have ended without an answer"))
	case <-ctx.Done():
		p.signals <- syscall.SIGTERM
		<-p.ended
		return measure.Result{}, true, context.Cause(ctx)
	}
}

// end lets the ranks end, and returns when they have.
func (p *processes) end() error {
	_ = p.questions.Close()
	<-p.ended
	return p.err
}

// answer answers questions on rank 0 of a job of processes.
func (r *ranks) answer(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	in, out := json.NewDecoder(stdin), json.NewEncoder(stdout)
	for {
		var q question
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var a answer
		_, err := loadJob(&q.Job)
		if err == nil {
			a.Result, err = r.measure(ctx, &q.Job, q.Case)
		}
		if err != nil {
			if r.team.Broken() {
				return err // and the launcher knows which rank is to blame
			}
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

// loadJob loads the configuration of a job, and describes it.
func loadJob(j *measure.Job) (found measure.Config, err error) {
	if j.Config, found, err = loadConfig(j.File); err == nil {
		err = j.Vary()
	}
	return found, err
}

// launched measures as a rank of the launcher that started this process: rank 0 runs lead, and the
// others take part in what it measures.
func launched(lead func(*ranks) error) error {
	return unwrapped(dist.Spawn(func(spawned context.Context, rank int) error {
		if rank > 0 {
			return measure.Serve(spawned, func(j *measure.Job) error {
				_, err := loadJob(j)
				return err
			})
		}
		team := &measure.Team{}
		err := lead(&ranks{team: team})
		return errors.Join(err, team.Dismiss())
	}))
}

// unwrapped returns the error of the only rank that dist.Spawn has run here.
func unwrapped(err error) error {
	if failed, ok := errors.AsType[*dist.RankError](err); ok {
		return failed.Err
	}
	return err
}

// launchedRanks returns the number of ranks of the launcher, 0 without one, and checks that the
// flags ask for no others.
func (c *benchCommand) launchedRanks() (int, error) {
	if !dist.IsLaunched() {
		return 0, nil
	}
	_, n := doctor.Launcher(os.Getenv)
	if len(c.Ranks) > 0 && !slices.Equal(c.Ranks, []int{n}) {
		return n, fmt.Errorf("a launcher has started %d ranks, and --ranks asks for others: omit --ranks, or start goccl bench without the launcher, with --transport shm", n)
	}
	return n, nil
}

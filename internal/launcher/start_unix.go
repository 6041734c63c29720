//go:build unix

package launcher

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// startAll starts the keeper and then the ranks.
func (l *launcher) startAll() error {
	l.started, l.failure.before = time.Now(), countShortages("")
	if err := reserveThreads(l.Ranks); err != nil {
		return err
	}
	if err := l.keeper.start(l.program, l.name, l.nodes.job, l.null); err != nil {
		return fmt.Errorf("starting the keeper of the ranks: %w", err)
	}

	l.makeReports()
	environment := l.environment()
	for local := range l.here() {
		i := l.firstHere() + local
		variables := slices.Concat(rankVariables(l.nodes.job, l.nodes.secret, i, l.world(), local, l.Ranks), l.nodeVariables(), restartVariables(l.restart),
			l.cores.processors(environment, local), l.reports.variables(i))
		if err := l.startRank(i, slices.Concat(environment, variables)); err != nil {
			return fmt.Errorf("starting rank %d: %w", i, err)
		}
	}
	return nil
}

// startRank starts a rank, waits for its process and reads its pipes in the background.
func (l *launcher) startRank(i int, environment []string) error {
	r := &l.ranks[i]
	input := l.null
	if i == 0 {
		var err error
		if input, err = standardInput(l.Stdin); err != nil {
			return err
		}
		defer input.Close()
	}

	var outputs [2]*os.File
	for k := range outputs {
		var err error
		if r.pipes[k], outputs[k], err = os.Pipe(); err != nil {
			return err
		}
		defer outputs[k].Close()
	}

	var p *os.Process
	err := l.cores.startOn(i-l.firstHere(), func() (err error) {
		p, err = os.StartProcess(l.program, append([]string{rankName, l.Program}, l.Args...), &os.ProcAttr{
			Files: []*os.File{input, outputs[0], outputs[1], l.keeper.pipe},
			Env:   environment,
			Sys:   rankAttributes(),
		})
		return err
	})
	if err != nil {
		return err
	}

	r.PID, r.running, r.started = p.Pid, true, time.Now()
	l.running++

	go func() {
		limit := awaitEnd(p.Pid)
		state, err := p.Wait()
		isDone := err != nil || !state.Success() || r.awaitEmptyGroup(alikeGrace) || isDead(r.PID)
		l.children <- child{i, state, err, !isDone, limit}
	}()
	for k, pipe := range r.pipes {
		if pipe != nil {
			r.reading.Go(func() { r.streams[k].readFrom(pipe) })
		}
	}
	return nil
}

// child is the process of a rank that has ended.
type child struct {
	rank  int
	state *os.ProcessState
	err   error         // of waiting for it
	rest  bool          // it ended well, and other processes of its group run on
	limit time.Duration // of its CPU time, 0 if there is none
}

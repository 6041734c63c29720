package launchenv

import (
	"fmt"
	"strconv"
)

// Job describes this process's rank and job. Size is at least 2, or 1 for goccl run.
type Job struct {
	Rank, Size int    // 0 <= Rank < Size
	Key        string // of the job and its restart: up to 64 letters, digits, '.', '_', '-'; "" if Apart, unless by goccl run
	By         string // the launcher: "goccl run", "env://", "torchrun", "Open MPI", "PMI" or "Slurm"
	Port       int    // held by rank 0 while the job joins, so that no second job has this key; 0: none
	Secret     string // known to the job's ranks only; "": none
	Apart      string // why the ranks are not all on this node; "" if they are
	RankFrom   string // such as "RANK=1"
	SizeFrom   string // such as "WORLD_SIZE=4"
}

// Detect returns the job of which a launcher started this process as a rank, or nil.
// getenv works like os.Getenv; an empty variable counts as unset. Errors are *Error.
func Detect(getenv func(string) string) (*Job, error) {
	return detect(environment{getenv, hydraProxy, ownNamespace, isLocal})
}

// environment is what a process can find out about itself; tests replace it.
type environment struct {
	get       func(string) string
	proxy     func() string            // hydraProxy
	namespace func(kind string) string // ownNamespace
	local     func(host string) error  // isLocal
}

func detect(e environment) (*Job, error) {
	for _, l := range launchers {
		missing := e.unset(l.variables...)
		if l.isGoccl && missing != nil && len(missing) < len(l.variables) {
			return nil, &Error{Missing, missing, fmt.Sprintf(
				"%s: set all of %s, as goccl run does, or none of them", isNotSet(missing), list(l.variables))}
		}

		if missing != nil {
			continue
		}
		j, err := e.ranks(l.by, l.rank, l.size)
		if err != nil || j.Size == 1 && !l.isGoccl {
			return nil, err
		}

		if j.Secret, err = e.secret(l.isGoccl); err != nil {
			return nil, err
		}
		if err := l.identify(e, j); err != nil {
			return nil, err
		}
		if j.Apart != "" && !l.isGoccl {
			j.Key, j.Port = "", 0 // made of what is unique on one node
		}
		return j, nil
	}
	return nil, e.incomplete()
}

// incomplete returns an error if RANK and WORLD_SIZE make this process one of several ranks, and
// nothing identifies the job: each process would otherwise be a job of its own. One of the two
// alone, or a value that is no rank of several, is of another system.
func (e environment) incomplete() error {
	j, err := e.ranks("env://", "RANK", "WORLD_SIZE")
	if err != nil || j.Size == 1 {
		return nil
	}
	missing := e.unset("MASTER_ADDR", "MASTER_PORT")
	return &Error{Missing, missing, fmt.Sprintf(
		"%s, and %s: set MASTER_ADDR and MASTER_PORT on all ranks, as torchrun does, start them with goccl run, or unset RANK and WORLD_SIZE if this process is no rank of a job", j, isNotSet(missing))}
}

// ranks reads the variables rank and size.
func (e environment) ranks(by, rank, size string) (*Job, error) {
	j := &Job{By: by, RankFrom: rank + "=" + e.get(rank), SizeFrom: size + "=" + e.get(size)}
	var err error
	if j.Size, err = e.number(size, 1); err != nil {
		return nil, err
	}
	if j.Rank, err = e.number(rank, 0); err != nil {
		return nil, err
	}
	if j.Rank >= j.Size {
		return nil, &Error{Contradiction, []string{rank, size}, fmt.Sprintf(
			"%s and %s contradict each other: ranks count from 0, and the last of %d is %d",
			j.RankFrom, j.SizeFrom, j.Size, j.Size-1)}
	}
	return j, nil
}

// number reads a variable that is set.
func (e environment) number(variable string, least int) (int, error) {
	n, err := strconv.Atoi(e.get(variable))
	if err != nil || n < least {
		return 0, &Error{Contradiction, []string{variable}, fmt.Sprintf(
			"%s=%s: the launcher's variable should be a number from %d on", variable, e.get(variable), least)}
	}
	return n, nil
}

// unset returns the variables that are not set.
func (e environment) unset(variables ...string) (missing []string) {
	for _, v := range variables {
		if e.get(v) == "" {
			missing = append(missing, v)
		}
	}
	return missing
}

// String describes the job in a sentence.
func (j *Job) String() string {
	return fmt.Sprintf("this process is rank %d of %d by the variables of %s (%s, %s)", j.Rank, j.Size, j.By, j.RankFrom, j.SizeFrom)
}

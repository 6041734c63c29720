//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ownGroup makes the child the leader of a process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// askToEnd is the signal that makes a launcher stop its ranks and remove its files.
func askToEnd(leader *os.Process) error {
	if err := syscall.Kill(-leader.Pid, syscall.SIGTERM); err != nil {
		return os.ErrProcessDone
	}
	return nil
}

// killAll kills the rest of the child's process group, and every process that
// has the mark in its environment, if the system shows that (in /proc). It waits
// a little until they are gone.
func killAll(leader *os.Process, mark string) {
	_ = syscall.Kill(-leader.Pid, syscall.SIGKILL) // the group may be empty
	for range 100 {
		found := false
		environments, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range environments {
			environment, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(environment, []byte(mark+"\x00")) {
				continue // it has ended, or belongs to another user
			}
			found = true
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
		if !found {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

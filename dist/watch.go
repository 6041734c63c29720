package dist

import (
	"fmt"
	"time"

	"github.com/goccl/goccl/internal/launchenv"
)

// watchVariable turns off that ranks fail when they lose their launcher.
const watchVariable = "GOCCL_WATCH_LAUNCHER"

// launcherPause is the time between two looks at the launcher, of whose end no launcher but goccl
// run lets its ranks know.
const launcherPause = time.Second

// watchLauncher makes the rank's groups fail soon after the launcher of its process has ended, if
// the launcher is a process of this node. It returns an error if that has happened already.
func (r *rank) watchLauncher() error {
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	if r.job.launched == nil || r.job.orphaned != nil || r.isWatching {
		return r.job.orphaned
	}
	if launcher, ok := r.job.launched.Launcher(); ok {
		r.isWatching = true
		time.AfterFunc(launcherPause, func() { r.lookAfter(launcher) })
	}
	return nil
}

// lookAfter looks whether the launcher lives, now and later, as long as the rank has or joins a
// group.
func (r *rank) lookAfter(launcher launchenv.Process) {
	j := r.job
	j.mu.Lock()
	groups := r.allGroups()
	switch {
	case len(groups) == 0 && r.joining == nil:
		r.isWatching = false
	case !launcher.HasEnded():
		time.AfterFunc(launcherPause, func() { r.lookAfter(launcher) })
		groups = nil

	default:
		j.orphaned = fmt.Errorf("its launcher, %s (pid %d), has ended; %s=false lets ranks go on without it", launcher.Name, launcher.PID, watchVariable)
		if r.joining != nil {
			r.joining.fail(r.number, j.orphaned)
		}
	}

	j.mu.Unlock()
	for _, g := range groups {
		g.comm.Abort(j.orphaned)
	}
}

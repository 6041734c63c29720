package dist

import (
	"fmt"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/launchenv"
)

// watchVariable turns off that groups fail when their ranks have lost the launcher.
const watchVariable = "GOCCL_WATCH_LAUNCHER"

// launcherPause is the time between two looks at the launcher, which sends no notification.
const launcherPause = time.Second

// findLauncher returns the launcher to watch when it is first called. The launcher may end later.
var findLauncher = sync.OnceValues(func() (p launchenv.Process, ok bool) {
	isWatched, _ := boolVariable(watchVariable, true) // its error was returned before
	if l, err := launch(); isWatched && err == nil && l != nil {
		return l.Launcher()
	}
	return p, false
})

// watchLauncher makes all groups of the rank fail soon after its launcher has ended. It looks until
// g, the default group, is closed.
func (g *ProcessGroup) watchLauncher() {
	launcher, ok := findLauncher()
	switch {
	case !ok || g.closed.Load():
	case !launcher.HasEnded():
		interleave.AfterFunc(launcherPause, g.watchLauncher)

	default:
		g.rank.job.mu.Lock()
		groups := g.rank.allGroups()
		g.rank.job.mu.Unlock()
		for _, group := range groups {
			group.comm.Abort(fmt.Errorf("its launcher, %s (pid %d), has ended; %s=false lets ranks go on without it",
				launcher.Name, launcher.PID, watchVariable))
		}
	}
}

package launchenv

// LauncherThreads are the threads of a launcher beside those that wait for a rank each.
const LauncherThreads = 4

// LeastProcesses returns how many processes and threads a job needs at least.
func LeastProcesses(ranks int) int {
	const ofProcess = 6 // threads
	return ranks + LauncherThreads + (ranks+1)*ofProcess
}

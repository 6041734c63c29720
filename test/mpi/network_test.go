//go:build linux && (amd64 || arm64)

package mpi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A stand-in for a node is a process with namespaces of its own (of processes, the network, names, mounts, System V IPC), as process 1,
// and all that others start there. The head is one too: launchers run there, and it has a bridge by which the links of all
// nodes are joined. Nothing of them has a name outside: the kernel removes processes, links and files of all
// when the head's process 1 ends.

// spaces are the namespaces of a node.
const spaces = unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWNS | unix.CLONE_NEWIPC

const (
	subnet   = "10.77.0.0/24"
	headName = "head"
	// nodesVariable is the number of nodes that a head makes.
	nodesVariable = "TEST_GOCCL_NODES"
	// nameVariable is a node's name.
	nameVariable = "TEST_GOCCL_NODE"
	// placeVariable is a directory that all nodes share.
	placeVariable = "TEST_GOCCL_PLACE"
	// forbidden precedes what a head says if the machine does not let root make nodes.
	forbidden = "forbidden: "
)

// nodeName returns a node's name. Nodes count from 1, as the last byte of their addresses.
func nodeName(i int) string { return "node" + strconv.Itoa(i) }

// temporary is where each node has files of its own, in the place that is shared.
func temporary(place string) string { return filepath.Join(place, "tmp") }

// head is the head's process 1. It makes the nodes, prints for each of them the process, as the head counts, and the namespace of processes, and
// ends at the end of its input, which is that of the test at the latest.
func head() error {
	n, err := strconv.Atoi(os.Getenv(nodesVariable))
	if err != nil {
		return err
	}
	place := os.Getenv(placeVariable)
	hosts := "127.0.0.1 localhost\n10.77.0.100 " + headName + "\n"
	for i := 1; i <= n; i++ {
		hosts += fmt.Sprintf("10.77.0.%d %s\n", i, nodeName(i))
	}
	hostsFile := filepath.Join(place, "hosts")
	err = errors.Join(
		os.WriteFile(hostsFile, []byte(hosts), 0o600),
		furnish(headName, place),
		unix.Mount(hostsFile, "/etc/hosts", "", unix.MS_BIND, ""),
		ip("link set lo up"),
		ip("link add br0 type bridge"),
		ip("link set br0 address 02:00:00:00:00:64"), // else it changes with the links, and nodes no more reach the head
		ip("addr add 10.77.0.100/24 dev br0"),
		ip("link set br0 up"),
	)
	for i := 1; i <= n && err == nil; i++ {
		err = addNode(i)
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		fmt.Println(forbidden + strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	go reap()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// addNode starts node i and links it to the head's bridge.
func addNode(i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), partVariable+"=node", nameVariable+"="+nodeName(i))
	c.SysProcAttr = &unix.SysProcAttr{Cloneflags: spaces}
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	space, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("%s: %w", nodeName(i), errors.Join(err, c.Wait()))
	}
	pid := c.Process.Pid
	fmt.Print(pid, " ", space)
	inside := func(command string) error { return run(fmt.Sprintf("nsenter -t %d -n ip %s", pid, command)) }
	return errors.Join(
		ip(fmt.Sprintf("link add %s type veth peer name eth0 netns %d", nodeName(i), pid)),
		ip(fmt.Sprintf("link set %s master br0 up", nodeName(i))),
		inside("link set lo up"),
		inside(fmt.Sprintf("addr add 10.77.0.%d/24 dev eth0", i)),
		inside("link set eth0 up"),
	)
}

// node is a node's process 1. It prints the node's namespace of processes.
func node() error {
	if err := furnish(os.Getenv(nameVariable), os.Getenv(placeVariable)); err != nil {
		return err
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return err
	}
	fmt.Println(space)
	reap()
	return nil
}

// furnish gives the namespaces of this process a name and mounts of their own.
func furnish(name, place string) error {
	err := errors.Join(
		unix.Sethostname([]byte(name)),
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		os.MkdirAll(temporary(place), 0o700),
	)
	if err != nil {
		return err
	}
	return errors.Join(
		unix.Mount("proc", "/proc", "proc", 0, ""),
		unix.Mount("shm", "/dev/shm", "tmpfs", 0, "mode=1777"),
		unix.Mount("tmp", temporary(place), "tmpfs", 0, "mode=1777"),
	)
}

// reap is the other work of a process 1: it takes the results of processes whose parents have ended. It never returns.
func reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid > 0 || err == unix.EINTR {
			continue
		}
		<-ended
	}
}

// ip runs a command of iproute2.
func ip(command string) error { return run("ip " + command) }

// run runs a command of words. The error says whether the machine forbids it.
func run(command string) error {
	words := strings.Fields(command)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err == nil {
		return nil
	}
	said := strings.TrimSpace(string(out))
	for text, errno := range map[string]error{"Operation not permitted": unix.EPERM, "Operation not supported": unix.EOPNOTSUPP, "Unknown device type": unix.EOPNOTSUPP} {
		if strings.Contains(said, text) {
			err = errno
		}
	}
	return fmt.Errorf("%s: %s: %w", command, said, err)
}

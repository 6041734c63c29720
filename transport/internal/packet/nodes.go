package packet

import (
	"context"
	"errors"
	"slices"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// nodes is on which nodes the job's processes are, and what those of this node share.
type nodes struct {
	job     string             // names the job
	firstOf []int              // by process, the first process of its node
	here    []int              // the processes of this node
	hosts   []string           // by process, the name of its host; "": this one's
	memory  transport.Endpoint // connects them, in that order; it only forms groups. nil: this process is alone
	users   interleave.Int64   // endpoints that were not closed, and groups that are being formed
}

// findNodes returns on which nodes the processes are, from their descriptions.
func findNodes(transport string, hosts []host, me int) *nodes {
	n := &nodes{job: jobName(transport, hosts[0]), firstOf: make([]int, len(hosts))}
	for p, h := range hosts {
		if h.name == hosts[me].name {
			h.name = ""
		}
		n.hosts = append(n.hosts, h.name)
		n.firstOf[p] = slices.IndexFunc(hosts, h.sharesMemory)
		if n.firstOf[p] == slices.IndexFunc(hosts, hosts[me].sharesMemory) {
			n.here = append(n.here, p)
		}
	}
	return n
}

// connectByMemory connects the processes of one node by shared memory.
func (p *Process) connectByMemory(ctx context.Context, first host, rank, size int) (transport.Endpoint, error) {
	return shm.Join(ctx, shm.Job{Name: memoryName(p.name, first), Rank: rank, Size: size, Secret: first.token})
}

// placesHere returns the indices in here of processes, nil if not all are there or this process
// shares no memory.
func (n *nodes) placesHere(processes []int) (places []int) {
	if n.memory == nil {
		return nil
	}
	for _, p := range processes {
		index, isHere := slices.BinarySearch(n.here, p)
		if !isHere {
			return nil
		}
		places = append(places, index)
	}
	return places
}

// acquire uses the memory. It returns false if that was freed.
func (n *nodes) acquire() bool {
	for {
		users := n.users.Load()
		if users == 0 {
			return false
		}
		if n.users.CompareAndSwap(users, users+1) {
			return true
		}
	}
}

// release ends a use.
func (n *nodes) release() error {
	if n.users.Add(-1) > 0 || n.memory == nil {
		return nil
	}
	return errors.Join(n.memory.Close(), n.memory.Free())
}

// Nodes implements transport.Nodes.
func (ep *Endpoint) Nodes() []int {
	g := ep.group
	numbers := make([]int, len(g.processOf))
	var seen []int
	for rank, p := range g.processOf {
		first := g.nodes.firstOf[p]
		if numbers[rank] = slices.Index(seen, first); numbers[rank] < 0 {
			numbers[rank] = len(seen)
			seen = append(seen, first)
		}
	}
	return numbers
}

// Host implements transport.Nodes.
func (ep *Endpoint) Host(rank int) string { return ep.group.hostOf(rank) }

// hostOf returns the name of the host of a rank, "" if this rank's has the same, or not all ranks
// have joined.
func (g *group) hostOf(rank int) string {
	if g.nodes == nil {
		return ""
	}
	return g.nodes.hosts[g.processOf[rank]]
}

// Level implements transport.Nodes.
func (ep *Endpoint) Level(ctx context.Context, members []int) (transport.Endpoint, error) {
	made, err := ep.formGroup(ctx, ^ep.group.id, 0, members) // no group of Group has that id
	if err != nil {
		return nil, err
	}
	ep.group.addLevel(made, members)
	return made, nil
}

// Culprit implements transport.Nodes.
func (ep *Endpoint) Culprit(rank int) int {
	ep.group.rest.CatchUp()
	return ep.FindStuck(rank)
}

// formOnNode forms the group with a number among those of a parent, of processes of this node,
// which have these indices there. The memory forms groups of many parents.
func (ep *Endpoint) formOnNode(ctx context.Context, parent, number uint64, members, places []int) (transport.Endpoint, error) {
	if err := ep.CheckMembers(members, func(int) bool { return false }); err != nil && ctx.Err() == nil {
		return nil, err
	}
	within, stop := ep.watchMembers(ctx, members)
	defer stop()
	const call = 1<<transport.GroupCallBits - 1
	here := groupID(parent, number&call, nil)&call | number&^call
	return ep.group.nodes.memory.(transport.Groups).Group(within, here, places)
}

// watchMembers returns a context that ends if some members will not come to a group. The memory's
// own group does not know who has left this one, nor do processes that still join it know who has
// died.
func (ep *Endpoint) watchMembers(ctx context.Context, members []int) (within context.Context, stop func()) {
	within, cancel := context.WithCancelCause(ctx)
	var watching interleave.WaitGroup
	watching.Go(func() {
		tick := interleave.NewTimer(tendTime)
		defer tick.Stop()
		for ; interleave.First(within.Done(), tick.C) != 0; tick.Reset(tendTime) {
			if err := ep.CheckMembers(members, func(int) bool { return false }); err != nil {
				interleave.Step()
				cancel(err)
			}
		}
	})

	return within, func() {
		interleave.Step()
		cancel(nil)
		watching.Wait()
	}
}

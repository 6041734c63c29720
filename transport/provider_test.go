package transport

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func provider(name string) Provider {
	return Provider{
		Name:   name,
		Detect: func(*Job) (bool, error) { return false, nil },
		Join:   func(context.Context, *Job) ([]Endpoint, error) { return nil, nil },
	}
}

// auto asks the known transports first, in their order, and then the others by name, whatever the order in which
// packages register them.
func TestOrderOfProviders(t *testing.T) {
	defer func() { providers.all = nil }()
	require.Equal(t, []string{"mpi", "tcp", "shm", "local"}, Names(), "known without a package")
	require.Empty(t, Providers())
	for _, name := range []string{"local", "verbs", "shm", "avian"} {
		Register(provider(name))
	}
	var linked []string
	for _, p := range Providers() {
		linked = append(linked, p.Name)
	}
	require.Equal(t, []string{"shm", "local", "avian", "verbs"}, linked)
	require.Equal(t, []string{"mpi", "tcp", "shm", "local", "avian", "verbs"}, Names())

	p, err := Lookup("avian")
	require.NoError(t, err)
	require.Equal(t, "avian", p.Name)
	_, err = Lookup("tcp")
	var missing *NotAvailableError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, "tcp", missing.Transport)

	require.PanicsWithValue(t, `transport: "shm" is registered twice`, func() { Register(provider("shm")) })
}

func TestInvalidProviders(t *testing.T) {
	for _, name := range []string{"", "auto", "RDMA", "1st", "a b", "a-b"} {
		require.Panics(t, func() { Register(provider(name)) }, name)
	}
	for _, p := range []Provider{{Name: "x"}, {Name: "x", Detect: provider("x").Detect}, {Name: "x", Join: provider("x").Join}} {
		require.PanicsWithValue(t, `transport: the provider of "x" lacks Detect or Join`, func() { Register(p) })
	}
	_, err := Lookup("x")
	require.Error(t, err)
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	o, err := parseFlags(strings.Fields("-ranks 8,2,8 -sizes 1KiB,0,64MiB,4 -passes 5 -budget 1s -compute 100ms -only gloo,mpich"), nil)
	require.NoError(t, err)
	require.Equal(t, options{
		ranks: []int{2, 8}, sizes: []int{0, 4, 1024, 64 << 20}, passes: 5, budget: time.Second,
		compute: 100 * time.Millisecond, limit: 3*time.Minute + 80*time.Second, only: []string{"gloo", "mpich"},
	}, o)
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	for args, says := range map[string]string{
		"x":                              `unexpected argument "x"`,
		"-rank 2":                        "flag provided but not defined",
		"-ranks 2,":                      `-ranks: "" is no number from 2`,
		"-ranks 1":                       `-ranks: "1" is no number from 2`,
		"-sizes 4,6":                     `-sizes: "6" is no multiple of 4 bytes`,
		"-sizes -4":                      `-sizes: "-4" is not a size in bytes`,
		"-sizes 2GiB":                    `-sizes: "2GiB" is no multiple of 4 bytes up to 1GiB`,
		"-sizes 1kb":                     `-sizes: "1kb" is not a size in bytes`,
		"-passes 0":                      "at least one pass",
		"-budget 0s":                     "some time",
		"-compute -1s":                   "-compute is -1s, want a time up to 1s",
		"-compute 2s":                    "-compute is 2s",
		"-workloads resnet":              `-workloads: unknown workload "resnet": want one of lenet5, `,
		"-workloads vgg16 -sizes 4":      "-workloads determines what is compared: omit -sizes",
		"-workloads vgg16 -only gloo":    "omit -only",
		"-workloads vgg16 -compute 10us": "omit -compute",
		"-nodes a,b -ranks 2,3":          "give -ranks multiples of the number of nodes",
		"-nodes a,b -overhead -ranks 2":  "omit -workloads and -overhead",
		"-overhead -compute 10us":        "omit -workloads and -compute",
		"-only lammpi":                   `-only: "lammpi" is none of openmpi, mpich, gloo`,
	} {
		var out, errs strings.Builder
		require.Equal(t, 2, command(strings.Fields(args), &out, &errs), args)
		require.Contains(t, errs.String(), says)
		require.Empty(t, out.String())
	}
}

func TestHelp(t *testing.T) {
	var out, errs strings.Builder
	require.Equal(t, 0, command([]string{"-h"}, &out, &errs))
	require.Contains(t, out.String(), "-budget time")
	require.Empty(t, errs.String())
}

func TestSizes(t *testing.T) {
	for text, bytes := range map[string]int{"4": 4, "1K": 1024, "1KiB": 1024, "1GiB": 1 << 30, "0": 0} {
		got, err := parseSize(text)
		require.NoError(t, err)
		require.Equal(t, bytes, got)
	}
	for bytes, text := range map[int]string{0: "barrier", 4: "4 B", 1028: "1028 B", 1024: "1 KiB", 3 << 20: "3 MiB", 1 << 30: "1 GiB"} {
		require.Equal(t, text, formatSize(bytes))
	}
}

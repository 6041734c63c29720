// Package config reads ccl.yaml and environment variables, and chooses the algorithm of
// every call by them.
//
// # Model
//
// [Load], [Parse] and [Find] return a [Config]: what a file and the environment ask for.
// [Config.Resolve] applies it to one group. The resulting [Settings] hold the group's size,
// topology, timeout and algorithms with their parameters, and implement ccl.Selector:
//
//	cfg, err := config.Load("ccl.yaml")
//	settings, err := cfg.Resolve(config.Request{Ranks: 4})
//	comm, err := ccl.New(ctx, endpoint, ccl.WithSelector(settings))
//
// A program's option overrides an environment variable, which overrides the file, which
// overrides the default. Each of [Settings.Values] names its origin.
//
// [Settings.Choose] takes the entry that a call names, else the configured algorithm, else
// the entry of the first rule that matches the call. [Settings.Explain] shows why, and
// [Settings.Findings] lists rules that overlap, rules that never match, and calls that no
// rule matches. [Check] does all of this for a file that is being written, and [Schema] is for
// the editor it is written in.
//
// # Concurrency
//
// A Config and Settings are immutable; all functions and methods may be called concurrently.
//
// # Failure
//
// Reading is strict: an unknown key, a value of the wrong type or a duplicate is an *[Error]
// with file, line, column, key and, for a misspelt name, the nearest valid one. All mistakes are
// reported at once; several are [Errors]. Nothing falls back to a default after an error.
package config

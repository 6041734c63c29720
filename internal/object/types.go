package object

import (
	"bytes"
	"encoding"
	"encoding/gob"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// typeInfo is what a walk knows about a type.
type typeInfo struct {
	isExternal bool    // its values encode themselves
	isVisited  bool    // the walk looks at its values: they are no mere numbers or text
	loss       string  // why gob refuses its values
	fields     []field // of a struct: those that the walk looks at
}

type field struct {
	index int
	name  string
	loss  string // why gob leaves it out, and what to do; empty: gob writes it
}

var (
	gobEncoder      = reflect.TypeFor[gob.GobEncoder]()
	binaryMarshaler = reflect.TypeFor[encoding.BinaryMarshaler]()
)

func encodesItself(t reflect.Type) bool {
	return t.Implements(gobEncoder) || t.Implements(binaryMarshaler)
}

// infoOf returns what the walk knows about a type.
func (w *walk) infoOf(t reflect.Type) *typeInfo {
	info := w.types[t]
	if info != nil {
		return info
	}

	info = &typeInfo{isExternal: encodesItself(t) || encodesItself(reflect.PointerTo(t))}
	w.types[t] = info
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		info.isVisited = true
		if _, hasEnd := behind(t); !hasEnd {
			info.loss = fmt.Sprintf("is a %v, a pointer that leads to pointers only, and gob cannot write that", t)
		}
	case info.isExternal:
		info.isVisited = !encodesItself(t)
	case k == reflect.Func || k == reflect.Chan || k == reflect.UnsafePointer:
		info.loss = fmt.Sprintf("holds a %v, and gob cannot write that", t)

	case k == reflect.Struct:
		w.addFields(info, t)
	case k == reflect.Array:
		info.isVisited = w.infoOf(t.Elem()).isVisited
	default:
		info.isVisited = k == reflect.Interface || k == reflect.Slice || k == reflect.Map
	}
	info.isVisited = info.isVisited || info.loss != "" || info.fields != nil
	return info
}

// hasParts reports whether the walk looks at what is behind a pointer, or in a list or map.
func (w *walk) hasParts(t reflect.Type) bool {
	return w.infoOf(t.Elem()).isVisited || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map && w.infoOf(t.Key()).isVisited
}

// maxPointers bounds the pointers to pointers that are followed: a type may be a pointer to itself,
// directly or through others. Package gob does not return from some of those.
const maxPointers = 100

// behind returns the type behind pointers, and whether they have an end.
func behind(t reflect.Type) (base reflect.Type, hasEnd bool) {
	for n := 0; n < maxPointers && t.Kind() == reflect.Pointer; n++ {
		t = t.Elem()
	}
	return t, t.Kind() != reflect.Pointer
}

// maxLists bounds the lists of lists that are followed: a type may be a list of itself.
const maxLists = 8

// lossOf returns why gob refuses the values of a type, lists and maps of them included; empty if it
// does not.
func (w *walk) lossOf(t reflect.Type) string {
	for range maxLists {
		isList := t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map
		if !isList || w.infoOf(t).isExternal {
			return w.infoOf(t).loss
		}
		t = t.Elem()
	}
	return ""
}

func (w *walk) addFields(info *typeInfo, t reflect.Type) {
	const methods = "or give %v the methods GobEncode and GobDecode"
	sent := 0
	for i := range t.NumField() {
		f := t.Field(i)

		base, _ := behind(f.Type)
		switch {
		case !f.IsExported():
			info.fields = append(info.fields, field{i, f.Name, fmt.Sprintf("is not exported, and gob leaves it out: export it, leave it zero, "+methods, t)})
			continue
		case base.Kind() == reflect.Func || base.Kind() == reflect.Chan:
			info.fields = append(info.fields, field{i, f.Name, fmt.Sprintf("is a %v, and gob leaves it out: leave it nil, "+methods, f.Type, t)})
			continue
		case w.infoOf(f.Type).isVisited || reflect.Float32 <= base.Kind() && base.Kind() <= reflect.Complex128:
			info.fields = append(info.fields, field{index: i, name: f.Name})
		}

		sent++
	}
	if sent == 0 && t.NumField() > 0 {
		info.loss = fmt.Sprintf("holds a %v without exported fields: export what other ranks need, "+methods, t, t)
	}
}

// arrivals has the type as which a value in an interface arrives, by the type that it has. What
// gob.Register was given does not change.
var arrivals sync.Map

// arrival returns the type as which v, in an interface, arrives, or nil if gob does not know v's
// type. A trial tells. It returns v's own type if the trial fails for another cause, for which
// encoding the object fails too.
func (w *walk) arrival(v reflect.Value) (arrives reflect.Type) {
	t := v.Type()
	if known, ok := arrivals.Load(t); ok {
		return known.(reflect.Type)
	}
	defer func() {
		if recover() != nil { // in a method of the value
			arrives = t
		}
	}()

	// A zero value is short, but methods may refuse it.
	zero := reflect.New(t).Elem()
	p := zero
	for ; p.Kind() == reflect.Pointer; p = p.Elem() {
		p.Set(reflect.New(p.Type().Elem()))
	}
	if w.infoOf(p.Type()).isExternal {
		zero = v
	}

	trial := struct{ V any }{zero.Interface()}
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(trial)
	if err == nil {
		err = gob.NewDecoder(&b).Decode(&trial)
	}

	switch {
	case err == nil:
		t = reflect.TypeOf(trial.V)
		arrivals.Store(v.Type(), t)
	case strings.Contains(err.Error(), "type not registered for interface"):
		return nil
	}
	return t
}

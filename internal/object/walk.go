package object

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// maxObjectDepth bounds the nesting of values in an object. Package gob recurses into
// each level, and a stack overflow ends the process.
const maxObjectDepth = 100_000

// walk visits the values that gob would encode. It returns an error for what gob cannot write or
// would lose, and notes in omitted what gob leaves out and the receiver restores.
type walk struct {
	root     reflect.Type // of the object
	types    map[reflect.Type]*typeInfo
	ended    map[reference]result
	path     []step   // from the object to the visited value
	pointers int      // followed since the last step
	omitted  omission // of the visited value
	omits    int      // omissions so far
}

// reference is what a pointer, map or slice refers to.
type reference struct {
	at  uintptr
	n   int
	typ reflect.Type
}

// result is what the walk found behind a reference.
type result struct {
	depth    int // inside: the walk is in it
	hasOmits bool
}

const inside = -1

// visit returns the depth of v, at level at of the object. isElement: v is not the field of a
// struct, so gob writes it even if it is zero.
func (w *walk) visit(v reflect.Value, at int, isElement bool) (deepest int, err error) {
	switch {
	case at > maxObjectDepth:
		return 0, fmt.Errorf("it is more than %d values deep", maxObjectDepth)
	case !v.IsValid():
		return 0, nil
	}
	info := w.infoOf(v.Type())
	if err := w.check(v, info, isElement); err != nil || info.isExternal || !info.isVisited {
		return 0, err
	}
	isReference := v.Kind() == reflect.Pointer || v.Kind() == reflect.Map || v.Kind() == reflect.Slice
	if !isReference || v.IsNil() || !w.hasParts(v.Type()) {
		return w.visitParts(v, at, isElement)
	}

	p := reference{v.Pointer(), 0, v.Type()}
	if v.Kind() == reflect.Slice {
		p.n = v.Len()
	}
	known, ok := w.ended[p]
	switch {
	case ok && known.depth == inside:
		return 0, fmt.Errorf("a %v in it holds itself, and gob cannot write that", v.Type())
	case ok && at+known.depth > maxObjectDepth:
		return 0, fmt.Errorf("it is more than %d values deep", maxObjectDepth)
	case ok && !known.hasOmits:
		return known.depth, nil
	}
	omits := w.omits
	w.ended[p] = result{depth: inside}
	deepest, err = w.visitParts(v, at, isElement)
	w.ended[p] = result{deepest, w.omits > omits}
	return deepest, err
}

// visitParts visits what v consists of.
func (w *walk) visitParts(v reflect.Value, at int, isElement bool) (deepest int, err error) {
	visit := func(s step, part reflect.Value, isElement bool) {
		if err == nil {
			var n int
			n, err = w.visitPart(s, part, at+1, isElement)
			deepest = max(deepest, n+1)
		}
	}
	switch t := v.Type(); v.Kind() {
	case reflect.Pointer, reflect.Interface:
		pointers := w.pointers
		if w.pointers++; v.Kind() == reflect.Interface {
			w.pointers, isElement = 0, true
		}
		deepest, err = w.visit(v.Elem(), at+1, isElement)
		deepest, w.pointers = deepest+1, pointers
	case reflect.Slice, reflect.Array:
		for i := 0; w.hasParts(t) && i < v.Len() && err == nil; i++ {
			visit(step{kind: inList, Index: int64(i)}, v.Index(i), true)
		}
	case reflect.Map:
		for it := v.MapRange(); w.hasParts(t) && it.Next() && err == nil; {
			visit(step{kind: inKey, key: it.Key()}, it.Key(), true)
			visit(stepTo(it.Key()), it.Value(), true)
		}
	case reflect.Struct:
		for _, f := range w.infoOf(t).fields {
			part, s := v.Field(f.index), step{Name: f.name}
			if f.loss == "" {
				visit(s, part, false)
			} else if err == nil && !part.IsZero() {
				w.path = append(w.path, s)
				err = w.errorf("%s", f.loss)
			}
		}
	}
	return deepest, err
}

// visitPart visits a part of the visited value.
func (w *walk) visitPart(s step, part reflect.Value, at int, isElement bool) (int, error) {
	whole, pointers := w.omitted, w.pointers
	w.path, w.omitted, w.pointers = append(w.path, s), omission{Step: s}, 0

	n, err := w.visit(part, at, isElement)

	if o := w.omitted; o.Pointers > 0 || o.Loss != 0 || o.Parts != nil {
		whole.Parts = append(whole.Parts, o)
	}
	w.path, w.omitted, w.pointers = w.path[:len(w.path)-1], whole, pointers
	return n, err
}

// check returns an error if gob cannot write v itself or would change it, and notes what gob omits
// of v.
func (w *walk) check(v reflect.Value, info *typeInfo, isElement bool) error {
	t, k := v.Type(), v.Kind()
	switch {
	case k == reflect.Pointer && v.IsNil() && isElement:
		return w.errorf("is a nil pointer, and gob writes none in lists, maps and interfaces: leave it out, or put it in a field of a struct")
	case k == reflect.Pointer && !v.IsNil():
		return nil
	case info.isExternal && k != reflect.Pointer:
		if !encodesItself(t) && !v.CanAddr() {
			return w.errorf("is a %v whose method of encoding belongs to the pointer: put a *%v there", t, t)
		}
		return nil
	case k == reflect.Interface && !v.IsNil():
		return w.checkArrival(v.Elem())
	case w.lossOf(t) != "":
		return w.errorf("%s", w.lossOf(t))
	}

	// Structs and arrays are written even if they are zero.
	lost := lossOf(v, isElement)
	isLeftOut := w.pointers > 0 && !isElement && k != reflect.Struct && k != reflect.Array && v.IsZero()
	if lost == 0 && !isLeftOut {
		return nil
	}
	isInKey := slices.ContainsFunc(w.path, func(s step) bool { return s.kind == inKey })
	if isInKey || v.CanComplex() && lost != 0 {
		return w.errorf("is %s, which gob loses: avoid that in complex numbers, in keys of maps, and behind keys that are neither strings nor integers", lossTexts[lost])
	}
	w.omitted.Loss, w.omitted.Pointers = lost, w.pointers
	w.omits++
	return nil
}

// checkArrival returns an error if v, in an interface, does not arrive, or as another type.
func (w *walk) checkArrival(v reflect.Value) error {
	t := v.Type()
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return nil // the visit of v reports it
	}
	switch arrives := w.arrival(v); arrives {
	case t:
		return nil
	case nil:
		return w.errorf("is a %v in an interface, and gob does not know that type: pass such a value to gob.Register on all ranks, once, in init", t)
	default:
		return w.errorf("is a %v, and would arrive as a %v: gob.Register has that type, so put that type there or register the other", t, arrives)
	}
}

// maxSteps bounds the steps of a path in an error.
const maxSteps = 12

// errorf returns an error about the visited value. It begins with the path to the value.
func (w *walk) errorf(format string, args ...any) error {
	text, path := w.root.String(), w.path
	if w.root.PkgPath() == "" {
		text = "(" + text + ")"
	}
	if n := len(path) - maxSteps; n > 0 {
		text, path = text+"...", path[n:]
	}
	for _, s := range path {
		text += s.String()
	}
	return errors.New(text + " " + fmt.Sprintf(format, args...))
}

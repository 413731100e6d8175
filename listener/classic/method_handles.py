"""Compose methods of the JVM into new ones, from Python: `java.lang.invoke` by way of Py4J.

A composed method runs entirely in the JVM and is compiled like any other. Only public parts of
`java.base` are used, of Java 8 and newer. Everything here raises what Py4J raises.

Types are given by short names: those in `_DESCRIPTORS`.
"""

from __future__ import annotations

from typing import Any

_CLASSES = {
    name.replace("$", ".").rpartition(".")[2]: name
    for name in (
        "java.lang.Class",
        "java.lang.Math",
        "java.lang.Object",
        "java.lang.String",
        "java.lang.StringBuilder",
        "java.lang.System",
        "java.lang.Throwable",
        "java.lang.reflect.InvocationHandler",
        "java.lang.reflect.Method",
        "java.util.AbstractMap$SimpleImmutableEntry",
        "java.util.Collection",
        "java.util.Objects",
        "java.util.concurrent.TimeUnit",
        "java.util.function.Consumer",
    )
}
_DESCRIPTORS = {
    "void": "V",
    "boolean": "Z",
    "int": "I",
    "long": "J",
    "Object[]": "[Ljava/lang/Object;",
    **{short: f"L{name.replace('.', '/')};" for short, name in _CLASSES.items()},
}


class MethodHandles:
    """Finds, joins and wraps methods. What is returned is a Java MethodHandle unless stated otherwise."""

    def __init__(self, gateway: Any) -> None:
        self.jvm = gateway.jvm
        self._new_array = gateway.new_array
        java = gateway.jvm.java
        # Each static member that is asked for by name costs a call of its own: ask once.
        handles = java.lang.invoke.MethodHandles
        self._collect = handles.collectArguments
        self._constant = handles.constant
        self._drop = handles.dropArguments
        self._fold = handles.foldArguments
        self._guard = handles.guardWithTest
        self._insert = handles.insertArguments
        self._parse_type = java.lang.invoke.MethodType.fromMethodDescriptorString
        self._load = java.lang.Class.forName
        self._object = java.lang.Object
        self._handles = handles
        self._lookup = handles.publicLookup()
        self._loader = java.lang.Thread.currentThread().getContextClassLoader()
        self._types: dict[str, Any] = {}
        self._loaded: dict[str, Any] = {}
        self._is_instance = self.find("Class", "isInstance", "boolean", "Object")

    def load(self, name: str) -> Any:
        """A Java class, by its full name or a short one."""
        if name not in self._loaded:
            full = _CLASSES.get(name, name)
            self._loaded[name] = self._load(full, True, self._loader)
        return self._loaded[name]

    # ---- methods that exist ------------------------------------------------------------------

    def find(self, owner: Any, name: str, result: str, *parameters: str) -> Any:
        """A method of a class, given by name or itself; its object becomes the first parameter."""
        cls = self.load(owner) if isinstance(owner, str) else owner
        return self._lookup.findVirtual(cls, name, self._type(result, *parameters))

    def find_static(self, owner: str, name: str, result: str, *parameters: str) -> Any:
        """A static method."""
        return self._lookup.findStatic(self.load(owner), name, self._type(result, *parameters))

    def find_constructor(self, owner: str, *parameters: str) -> Any:
        """A constructor; the result is an Object."""
        found = self._lookup.findConstructor(self.load(owner), self._type("void", *parameters))
        return self.cast(found, "Object", *parameters)

    def bind(self, target: Any, name: str, result: str, *parameters: str) -> Any:
        """A method of one object."""
        return self.find(target.getClass(), name, result, *parameters).bindTo(target)

    def is_a(self, cls: Any) -> Any:
        """(Object) → boolean: whether it is of this class."""
        return self._is_instance.bindTo(cls)

    def nothing(self, *parameters: str) -> Any:
        """Do nothing."""
        handle = self._constant(self.load("Object"), None)
        return self.drop(self.cast(handle, "void"), *parameters)

    def constant(self, text: str) -> Any:
        """() → String."""
        return self._constant(self.load("String"), text)

    # ---- methods made of others --------------------------------------------------------------

    def cast(self, handle: Any, result: str, *parameters: str) -> Any:
        """The same with other types; a result can be boxed or discarded."""
        return handle.asType(self._type(result, *parameters))

    def drop(self, handle: Any, *parameters: str) -> Any:
        """The same with more parameters in front, which are ignored."""
        return self._drop(handle, 0, self._type("void", *parameters).parameterList())

    def insert(self, handle: Any, position: int, value: Any) -> Any:
        """The same with one parameter fixed."""
        values = self._new_array(self._object, 1)
        values[0] = value
        return self._insert(handle, position, values)

    def pipe(self, first: Any, then: Any) -> Any:
        """Give the result of `first` to `then` as its first parameter."""
        return self._collect(then, 0, first)

    def if_else(self, test: Any, then: Any, otherwise: Any) -> Any:
        """All three take the same parameters."""
        return self._guard(test, then, otherwise)

    def sequence(self, *steps: Any) -> Any:
        """One after the other. All but the last give nothing and take what it takes, or nothing."""
        *before, handle = steps
        for step in reversed(before):
            handle = self._fold(handle, step)
        return handle

    def rescue(self, handle: Any, handler: Any) -> Any:
        """`handler` gets whatever `handle` throws, and its parameters, and gives the result instead."""
        return self._handles.catchException(handle, self.load("Throwable"), handler)

    # ---- objects -----------------------------------------------------------------------------

    def as_interface(self, name: str, handle: Any) -> Any:
        """A Java object of an interface with one method."""
        proxies = self.jvm.java.lang.invoke.MethodHandleProxies
        return proxies.asInterfaceInstance(self.load(name), handle)

    def implement(self, interface: Any, handle: Any) -> Any:
        """A Java object of any interface: each method gives its first argument to (Object) → void.

        That includes `equals`; `hashCode` and `toString` throw. Nobody may call the three.
        """
        first = self.insert(
            self._handles.arrayElementGetter(self.load("[Ljava.lang.Object;")), 1, 0
        )
        body = self.cast(self.pipe(first, handle), "Object", "Object[]")
        handler = self.as_interface("InvocationHandler", self.drop(body, "Object", "Method"))
        interfaces = self._new_array(self.jvm.java.lang.Class, 1)
        interfaces[0] = interface
        return self.jvm.java.lang.reflect.Proxy.newProxyInstance(self._loader, interfaces, handler)

    def _type(self, result: str, *parameters: str) -> Any:
        listed = "".join(_DESCRIPTORS[name] for name in parameters)
        text = f"({listed}){_DESCRIPTORS[result]}"
        if text not in self._types:
            self._types[text] = self._parse_type(text, self._loader)
        return self._types[text]

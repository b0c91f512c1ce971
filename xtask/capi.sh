# Installs a library for C with its header and its pkg-config file: capi.sh PREFIX NAME VERSION LIBRARY SOURCES
prefix=$1 name=$2 version=$3 library=$4 sources=$5
mkdir -p "$prefix/lib/pkgconfig" "$prefix/include"
prefix=$(cd "$prefix" && pwd)
file=lib$name.so.$version
# A program that runs keeps the old one.
rm -f "$prefix/lib/$file"
cp "$library" "$prefix/lib/$file"
cp "$sources/include/$name.h" "$prefix/include/"
ln -sf "$file" "$prefix/lib/lib$name.so"
ln -sf "$file" "$prefix/lib/lib$name.so.${version%%.*}"
sed "s|@prefix@|$prefix|g; s|@version@|$version|g; s|@library@|$name|g" "$sources/roundelay.pc.in" \
    > "$prefix/lib/pkgconfig/$(echo "$name" | tr _ -).pc"
echo "installed $prefix/lib/$file and its header below $prefix"

# Very many objects of python's own allocator and of malloc, all alive: objects.py COUNT
import sys
table = {}
for i in range(int(sys.argv[1])):
    table[i] = (str(i), [i])
print(len(table), table[7])

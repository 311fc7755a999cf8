-- Every instruction of a module has one number.
SELECT module_id, 'instruction ' || instruction || ' has two numbers' AS breach
FROM instructions
GROUP BY module_id, instruction
HAVING COUNT(*) > 1
